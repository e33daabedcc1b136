import type { Report } from "./migration.ts";

/** Settings with all their values, by name. Names are those of the flags with `_` for `-`: `skip_auth_routes`. */
export class Settings {
  readonly #values = new Map<string, string[]>();

  /** Adds values to those of the name if it is repeatable; otherwise replaces them. */
  add(name: string, values: readonly string[], repeatable = true): void {
    const before = repeatable ? (this.#values.get(name) ?? []) : [];
    this.#values.set(name, [...before, ...values]);
  }

  /** Removes a setting and returns its values. */
  takeAll(...names: readonly string[]): string[] {
    return names.flatMap((name) => {
      const found = this.#values.get(name) ?? [];
      this.#values.delete(name);
      return found;
    });
  }

  take(...names: readonly string[]): string | undefined {
    return this.takeAll(...names).at(-1);
  }

  takeFlag(name: string): boolean {
    const value = this.take(name);
    return value !== undefined && !/^(?:false|f|0)$/i.test(value);
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  names(): string[] {
    return [...this.#values.keys()];
  }
}

/** Parses `--name=value`, `--name value` and `--name`, also with a single dash, as Go's flag package does. */
export function addFlags(
  settings: Settings,
  args: readonly string[],
  isSwitch: (name: string) => boolean,
): void {
  for (let at = 0; at < args.length; at += 1) {
    const [, written = "", value] = /^--?([A-Za-z][\w.-]*)(?:=(.*))?$/s.exec(args[at] ?? "") ?? [];
    if (written === "") continue;
    const name = written.replaceAll("-", "_").toLowerCase();
    const next = args[at + 1];
    if (value !== undefined) settings.add(name, [value]);
    else if (isSwitch(name) || next === undefined || /^--?[A-Za-z]/.test(next))
      settings.add(name, ["true"]);
    else {
      settings.add(name, [next]);
      at += 1;
    }
  }
}

/** Splits a command line like a shell, but without substitutions. */
export function wordsIn(line: string): string[] {
  return Array.from(line.matchAll(/(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+/gs), ([word]) =>
    word.replaceAll(/\\(.)|"((?:[^"\\]|\\.)*)"|'([^']*)'/gs, (_, escaped, double, single) =>
      String(escaped ?? double ?? single).replaceAll(/\\(.)/gs, "$1"),
    ),
  );
}

/** Reports all remaining settings as lost, with the reason of their group, or as unknown. */
export function reportRest(
  settings: Settings,
  groups: readonly (readonly [pattern: RegExp, why: string])[],
  report: Report,
): void {
  for (const name of settings.names()) {
    const [, why] = groups.find(([pattern]) => pattern.test(name)) ?? [];
    report.lost(name, why ?? "unknown to this command: see the guide");
  }
}
