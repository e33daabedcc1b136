import type { Setting } from "../setting/setting.ts";
import type { Algorithm } from "../setting/tokens.ts";

const written = new Map<string, Promise<string>>();

/** Returns a file with `count` different valid tokens, one per line, which is written on the first call. */
export function tokenFile(setting: Setting, algorithm: Algorithm, count: number): Promise<string> {
  const name = `tokens-${algorithm}-${count}`;
  const place = `${setting.directory}/${name}`;
  const file = written.get(place) ?? write(setting, algorithm, count, name);
  written.set(place, file);
  return file;
}

async function write(
  { keys, write }: Setting,
  algorithm: Algorithm,
  count: number,
  name: string,
): Promise<string> {
  const tokens: string[] = [];
  while (tokens.length < count) {
    const batch = Array.from({ length: Math.min(500, count - tokens.length) }, () =>
      keys[algorithm].sign(),
    );
    tokens.push(...(await Promise.all(batch)));
  }
  return write(name, `${tokens.join("\n")}\n`);
}
