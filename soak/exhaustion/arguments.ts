import { parseArgs } from "node:util";
import { ATTACKS } from "./attacks.ts";

export const HELP = `Usage: npm run soak:exhaustion -- [options]

Attacks the built Sallyport, with the settings of the shipped manifests, the way strangers, clients with a
token and neighbours would to exhaust its memory. Prints for each attack the peak of resident memory, and
how long a well-behaved client waited for its answers meanwhile (median, 99th percentile and slowest): over
keep-alive and new connections, for a probe, and from a calm Node server that is not attacked. If the calm
server is slow, attackers and client lack CPU time, and the other figures say little about Sallyport.
Attackers run at a lower priority (nice 10) than backends and client. The delay of the client itself, when
it had no CPU at the arrival of an answer, is not counted but printed separately ("own").
With --bare, the same attacks are made against a bare Node server instead.
The exit code is 1 if memory exceeded 256 MiB or an answer took too long. Nothing leaves this machine.
Needs Linux and Python 3; with taskset and several cores, Sallyport has the first core for itself.

  --quick               one attack of each class, alternately over TLS and plain HTTP, a few seconds each
  --only NAME           only this attack; can be repeated
  --tls, --plain        only over TLS, or only over plain HTTP
  --workers N           threads of Sallyport; can be repeated (1 and 4)
  --seconds S           length of each attack (12, with --quick 4)
  --node-flag FLAG      an additional Node flag for Sallyport; can be repeated
  --bare                attacks a bare node:http or node:https server that answers like the backends, to show what
                        the attack does to Node and to the machine. The exit code is then always 0
  --entry FILE          the script that starts Sallyport (dist/main.js)
  --slowest MS          the maximum time of an answer, in milliseconds (1000)
  --memory-only         late and missing answers are printed but not judged, for machines on which attackers,
                        backends and Sallyport share few cores
  --json FILE           also writes the results to a file
  --list                lists the attacks
  -h, --help            this text
`;

/** Parses the arguments. Throws an error with a one-line message if one is invalid. */
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
    quick,
    only,
    entry,
    bare,
    json,
    list,
    help,
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
