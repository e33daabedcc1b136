import type { Migration } from "./migration.ts";

/** Why the settings whose names match a pattern have no counterpart. */
export type Reasons = readonly (readonly [pattern: RegExp, why: string])[];

/** Settings with all their values, by name. Names are those of the flags with `_` for `-`: `skip_auth_routes`. */
export class Settings {
  readonly #values = new Map<string, string[]>();

  /** Sets the values of a setting. */
  set(name: string, values: readonly string[]): void {
    this.#values.set(name, [...values]);
  }

  /** Adds the flags of a command line: `--name=value`, `--name value` and `--name`, as Go's flag package does. */
  addFlags(args: readonly string[], isSwitch: (name: string) => boolean): void {
    for (let at = 0; at < args.length; at += 1) {
      const flag = /^--?([A-Za-z][\w.-]*)(?:=(.*))?$/s.exec(args[at] ?? "");
      if (flag === null) continue;
      const [, written = "", given] = flag;
      const name = written.replaceAll("-", "_").toLowerCase();
      const next = args[at + 1];
      const isBare = isSwitch(name) || next === undefined || /^--?[A-Za-z]/.test(next);
      if (given === undefined && !isBare) at += 1;
      const value = given ?? (isBare ? "true" : next);
      this.#values.set(name, [...(this.#values.get(name) ?? []), value]);
    }
  }

  /** Removes settings and returns their values. */
  takeAll(...names: readonly string[]): string[] {
    return names.flatMap((name) => {
      const found = this.#values.get(name) ?? [];
      this.#values.delete(name);
      return found;
    });
  }

  /** The same for settings whose values are lists separated by commas. */
  takeList(name: string): string[] {
    return this.takeAll(name).flatMap((each) => each.split(","));
  }

  take(...names: readonly string[]): string | undefined {
    return this.takeAll(...names).at(-1);
  }

  /** @param otherwise the result if it is not set. */
  takeFlag(name: string, otherwise = false): boolean {
    const value = this.take(name);
    return value === undefined ? otherwise : !/^(?:false|f|0)$/i.test(value);
  }

  names(): string[] {
    return [...this.#values.keys()];
  }

  /** Reports all remaining settings as lost. */
  reportRest(reasons: Reasons, to: Migration): void {
    for (const name of this.names()) to.lost(name, reasonFor(name, reasons) ?? UNKNOWN);
  }
}

/** Why a setting that is neither translated nor explained is lost. */
export const UNKNOWN = "unknown to this command: see the guide";

export function reasonFor(name: string, reasons: Reasons): string | undefined {
  return reasons.find(([pattern]) => pattern.test(name))?.[1];
}

/** Splits a command line like a shell, but without substitutions. */
export function wordsIn(line = ""): string[] {
  return Array.from(line.matchAll(/(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+/gs), ([word]) =>
    word.replaceAll(/\\(.)|"((?:[^"\\]|\\.)*)"|'([^']*)'/gs, (_, escaped, double, single) =>
      String(escaped ?? double ?? single).replaceAll(/\\(.)/gs, "$1"),
    ),
  );
}
