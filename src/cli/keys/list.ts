import { systemClock } from "../../lib/clock.ts";
import { type KeyInState, keyStates } from "../../tokens/keys/key-states.ts";
import { parseFlags } from "../arguments.ts";
import { EXIT, type Terminal } from "../command.ts";
import { columns } from "../terminal/columns.ts";
import { formatFrom } from "../terminal/format.ts";
import { LOCATION_FLAGS, keyLocation, timeText } from "./location.ts";

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
