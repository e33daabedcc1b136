import { mkdir, rm } from "node:fs/promises";
import { type Command, EXIT, type Terminal } from "../../src/cli/command.ts";
import {
  CONFIGURATION_HELP,
  durationFlag,
  needsOneOf,
  parseFlags,
} from "../../src/cli/arguments.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { expiriesAfterRotation, type KeyInState, keyStates } from "./key-states.ts";
import { columns, formatFrom } from "../../src/cli/terminal/format.ts";
import { keyLocation, LOCATION_FLAGS, makeKeyFile, timeText } from "./location.ts";
import { writeExpiry } from "../../src/tokens/keys/key-directory.ts";

const ACTIONS = new Map(Object.entries({ generate, list, rotate, retire }));

export const keys: Command = {
  help: `Usage: sallyport keys generate|list|rotate|retire [options]

Manages the files of a key directory. Each file states when its key signs and verifies, and every running
Sallyport that uses the directory follows it.

  generate              makes the first key, which signs at once
  list                  shows the state of each key: published (signs later), signing, verifying, expired
  rotate                makes a key that is published first and signs later; older keys verify until
                        the last token that they signed has expired
  retire                removes the expired keys

  -d, --directory DIR   the directory (default: tokens.keys of the configuration)
      --algorithm NAME  signature algorithm (default: tokens.algorithm, else that of the newest key, else
                        ES256)
      --assertion       manages the assertion keys: uses keys, lifetime and algorithm of tokens.assertion
${CONFIGURATION_HELP}
      --name NAME       generate, rotate: name of the new file, without .jwk
      --publish-for D   rotate: how long the new key is published before it signs (default: 10m); must be
                        longer than the files take to reach every replica
      --lifetime D      rotate: lifetime of tokens (default: tokens.lifetime; required without a
                        configuration)
      --kid KID         retire: only this key
      --force           generate: even if there is a key; retire: even if it may still verify
      --format text|json  list: default: text
  -h, --help            this text`,
  async run(args, terminal) {
    const [name = "", ...rest] = args;
    const action = ACTIONS.get(name);
    if (action === undefined) throw needsOneOf([...ACTIONS.keys()], name);
    return action(rest, terminal);
  },
};

/** Prints the state of each key, newest first. */
export async function list(args: readonly string[], terminal: Terminal): Promise<number> {
  const flags = parseFlags(args, { ...LOCATION_FLAGS, format: { type: "string" } });
  const format = formatFrom(flags.format, ["text", "json"]);
  const { directory, algorithm } = keyLocation(flags, terminal);
  const { keys } = await keyStates(directory, algorithm, systemClock.now());
  if (format === "json") terminal.out(`${JSON.stringify(keys.map(asJson), undefined, 2)}\n`);
  else terminal.out(table(keys));
  return EXIT.done;
}

/** Formats times as ISO 8601, and open ends as null. */
function asJson({ kid, algorithm, file, state, madeAt, signsFrom, verifiesUntil }: KeyInState) {
  const time = (at: number): string | null => (at === 0 || at === Infinity ? null : timeText(at));
  return {
    kid,
    algorithm,
    file,
    state,
    madeAt: timeText(madeAt),
    signsFrom: time(signsFrom),
    verifiesUntil: time(verifiesUntil),
  };
}

function table(keys: readonly KeyInState[]): string {
  const head = ["STATE", "KID", "ALGORITHM", "MADE", "SIGNS FROM", "VERIFIES UNTIL", "FILE"];
  const rows = keys.map(({ canSign, ...key }) => [
    ...[key.state, key.kid, key.algorithm, timeText(key.madeAt)],
    canSign ? timeText(Math.max(key.signsFrom, key.madeAt)) : "never",
    ...[timeText(key.verifiesUntil), key.file],
  ]);
  return `${columns([head, ...rows]).join("\n")}\n`;
}

/**
 * Generates a key that signs at once. Without `--force`, refuses if another key can sign: replicas that do not have the
 * new key yet would refuse its tokens.
 */
export async function generate(args: readonly string[], terminal: Terminal): Promise<number> {
  const flags = parseFlags(args, {
    ...LOCATION_FLAGS,
    name: { type: "string" },
    force: { type: "boolean" },
  });
  const { directory, algorithm = "ES256" } = keyLocation(flags, terminal);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const nowMs = systemClock.now();
  const { keys } = await keyStates(directory, algorithm, nowMs);
  if (flags.force !== true && keys.some(signsOrWill)) {
    throw new Error(
      `there is a key for ${algorithm} in ${directory}; use keys rotate, or --force to sign with a new one at once`,
    );
  }
  const { kid, file } = await makeKeyFile({
    directory,
    algorithm,
    name: flags.name,
    nowMs,
    newestMs: keys[0]?.madeAt,
    signsFromMs: nowMs,
  });
  terminal.out(`${file}\n  ${kid} signs from now on\n`);
  return EXIT.done;
}

/**
 * Generates the next key, which is published now and signs later, and then sets the expiry of the older keys. If it
 * fails between the two steps, the older keys never expire, which is harmless.
 */
export async function rotate(args: readonly string[], terminal: Terminal): Promise<number> {
  const flags = parseFlags(args, {
    ...LOCATION_FLAGS,
    name: { type: "string" },
    "publish-for": { type: "string" },
    lifetime: { type: "string" },
  });
  const location = keyLocation(flags, terminal);
  const { directory } = location;
  const publishForMs = durationFlag("publish-for", flags["publish-for"] ?? "10m");
  const lifetimeMs = location.lifetimeMs(flags.lifetime);
  const nowMs = systemClock.now();
  const { algorithm, keys } = await keyStates(directory, location.algorithm, nowMs);
  if (!keys.some(signsOrWill)) {
    throw new Error(`no key in ${directory} can sign ${algorithm}; use keys generate`);
  }
  const signsFromMs = Math.ceil((nowMs + publishForMs) / 1000) * 1000;
  const made = await makeKeyFile({
    directory,
    algorithm,
    name: flags.name,
    nowMs,
    newestMs: keys[0]?.madeAt,
    signsFromMs,
  });
  terminal.out(`${made.file}\n  ${made.kid} signs from ${timeText(signsFromMs)}\n`);
  for (const { found, exp } of expiriesAfterRotation(keys, { nowMs, signsFromMs, lifetimeMs })) {
    const file = await writeExpiry(found, exp);
    terminal.out(`${file}\n  verifies until ${timeText(exp * 1000)}\n`);
  }
  return EXIT.done;
}

function signsOrWill({ canSign, state }: KeyInState): boolean {
  return canSign && state !== "expired";
}

/** Removes the files of expired keys, or those of one key. */
export async function retire(args: readonly string[], terminal: Terminal): Promise<number> {
  const flags = parseFlags(args, {
    ...LOCATION_FLAGS,
    kid: { type: "string" },
    force: { type: "boolean" },
  });
  const { directory, algorithm } = keyLocation(flags, terminal);
  const { keys } = await keyStates(directory, algorithm, systemClock.now());
  const leaving =
    flags.kid === undefined
      ? keys.filter(({ state }) => state === "expired")
      : named(keys, flags.kid, flags.force === true);
  if (leaving.length === 0) terminal.err("No key has expired yet.\n");
  for (const { file, kid } of leaving) {
    await rm(file);
    terminal.out(`${file}\n  ${kid} is retired\n`);
  }
  return EXIT.done;
}

/** @throws Error if there is no such key, if it still verifies and `force` is off, or if no other key could sign. */
function named(keys: readonly KeyInState[], kid: string, force: boolean): KeyInState[] {
  const leaving = keys.filter((key) => key.kid === kid);
  const living = leaving.find(({ state }) => state !== "expired");
  if (leaving.length === 0) throw new Error(`there is no key ${kid}`);
  if (living === undefined) return leaving;
  if (!force) {
    const until = timeText(living.verifiesUntil);
    throw new Error(`${kid} is ${living.state} (until: ${until}); --force ends its tokens now`);
  }
  const nowMs = systemClock.now();
  const another = keys.some(
    (key) => key.kid !== kid && key.canSign && key.state !== "expired" && key.signsFrom <= nowMs,
  );
  if (living.state === "signing" && !another) {
    throw new Error(`no other key signs at this time; use keys generate --force first`);
  }
  return leaving;
}
