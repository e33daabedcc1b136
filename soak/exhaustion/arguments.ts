import { parseArgs } from "node:util";
import { ATTACKS } from "./attacks.ts";

export const HELP = `Usage: npm run soak:exhaustion -- [options]

Attacks the built Sallyport with the settings of the shipped manifests, as strangers, clients with a
token and neighbours would to exhaust its memory, and prints for each attack the peak of resident
memory and how long a well-behaved client waited meanwhile for its answers (median, 99th percentile and
slowest): over kept and over new connections, of a probe, and of a calm server of Node's that nobody
attacks. Where that one is slow, attackers and client lack processor time, and the figures beside it say
little of Sallyport. Attackers run at a lower priority (nice 10) than backends and client. What the client
itself was late, since others had its processor when an answer came, is not counted and told beside ("own").
With --bare the same attacks meet a bare server of Node's in its place.
The exit code is 1 when memory passed 256 MiB or an answer took too long. Nothing leaves this machine.
Linux and Python 3; with taskset and several cores, Sallyport has the first one for itself.

  --quick               one attack of each class, TLS and plain in turn, a few seconds each
  --only NAME           this attack alone; several times for several
  --tls, --plain        over one of them alone
  --workers N           threads of Sallyport: 1, 4 or whatever you run; several times for several (1 and 4)
  --seconds S           how long each attack goes on (12, with --quick 4)
  --node-flag FLAG      one more flag of Node's for Sallyport, to try it; several times for several
  --bare                attacks a bare node:http or node:https server that answers as the backends do: what the
                        attack does to Node and to the machine. Its exit code says nothing
  --entry FILE          the script that is Sallyport (dist/main.js)
  --slowest MS          the longest that an answer may take, in milliseconds (1000)
  --memory-only         waiting alone is no fault: answers that are late or missing are printed and not judged,
                        for machines on which attackers, backends and Sallyport share few cores
  --json FILE           where the results go, besides the table
  --list                the attacks
  -h, --help            this text
`;

/** Throws with one line for a person when an argument makes no sense. */
export function readArguments(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string", multiple: true },
      tls: { type: "boolean", default: false },
      plain: { type: "boolean", default: false },
      workers: { type: "string", multiple: true },
      seconds: { type: "string" },
      "node-flag": { type: "string", multiple: true },
      entry: { type: "string" },
      json: { type: "string" },
      slowest: { type: "string" },
      bare: { type: "boolean", default: false },
      "memory-only": { type: "boolean", default: false },
      list: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const { quick, only = [], tls, plain, entry, bare, json, list, help } = values;
  for (const name of only) {
    if (!ATTACKS.some((attack) => attack.name === name))
      throw new Error(`no attack is named ${name}`);
  }
  return {
    ...{ quick, only, entry, bare, json, list, help },
    memoryOnly: values["memory-only"],
    slowestMs: whole("slowest", values.slowest ?? "1000", 60_000),
    flags: values["node-flag"] ?? [],
    over: tls === plain ? [true, false] : [tls],
    workers: (values.workers ?? (quick || bare ? ["1"] : ["1", "4"])).map((text) =>
      whole("workers", text),
    ),
    seconds: whole("seconds", values.seconds ?? (quick ? "4" : "12")),
  };
}

function whole(name: string, text: string, most = 600): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= most) return value;
  throw new Error(`--${name} must be a whole number from 1 to ${most}`);
}
