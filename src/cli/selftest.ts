import { withProgress } from "./terminal/progress.ts";
import { type Command, EXIT, type Terminal } from "./command.ts";
import { runAllChecks } from "../selftest/all-checks.ts";
import type { Result, Verdict } from "../selftest/check-result.ts";
import { readOptions, type SelftestOptions } from "./selftest-options.ts";
import {
  KEY_PATH,
  type RecordingBackend,
  startRecordingBackend,
} from "../selftest/recording-backend.ts";
import { ECHO_SHAPE, ECHO_WITNESS, NO_WITNESS, recordingWitness } from "../selftest/witness.ts";

/** An address that never resolves (RFC 6761 §6.4). Hostile tokens claim that their key is there. */
const NOWHERE = "http://selftest.invalid";

export const selftest: Command = {
  help: `Usage: sallyport selftest --url URL --token TOKEN [options]

Attacks your own deployment with hand-written bytes: framing, paths, headers and tokens. Prints one line
for each check: PASS, FAIL or SKIP, its name, and what happened. Exit code 1 if a check fails, else 0.

      --url URL             https://host:8443, or http if TLS ends in front of Sallyport
      --token TOKEN         a valid token for the protected path
      --token-file FILE     reads the token from a file, so that no process list shows it
      --ca FILE             the CA certificate of the deployment, PEM
      --insecure            accepts any certificate
      --backend HOST:PORT   listens there, or on unix:PATH, as a backend that records what reaches it over HTTP/1.1 or
                            h2c; give it once for each target of the upstream behind the protected path
      --echo PATH           a protected path below which an echo backend answers
      --protected PATH      a path that requires the token (default: that of --echo, else /)
      --public PATH         a path that requires no token, for attacks through it
      --public-suffix END   a suffix of paths that require no token, such as .css of a route with a regular
                            expression; paths below the protected path that lack it require a token
      --jwks FILE           the public keys of the deployment (JWKS), to forge tokens with them
      --timeout DURATION    for each response (default: 5s)
      --format text|json    default: text
  -h, --help                this text

Without --backend and --echo, selftest sees only responses, and skips the checks of what reaches the backend.
${ECHO_SHAPE}
Run it from an address that is not in server.trustedProxies, with rate limits that allow a few hundred
requests. It sends the token to the deployment, and never prints it.`,
  async run(args, terminal) {
    const options = readOptions(args);
    const results: Result[] = [];
    const report = (result: Result): void => {
      results.push(result);
      if (options.format === "text") terminal.out(line(result));
    };
    await withProgress(
      terminal,
      () => `waiting for the check after ${results.at(-1)?.name ?? "the start"}`,
      () => attack(options, terminal, report),
    );
    const count = (verdict: Verdict): number =>
      results.filter((result) => result.verdict === verdict).length;
    terminal.out(
      options.format === "json"
        ? `${JSON.stringify(results, undefined, 2)}\n`
        : `\n${count("PASS")} PASS, ${count("FAIL")} FAIL, ${count("SKIP")} SKIP\n`,
    );
    return count("FAIL") === 0 ? EXIT.done : EXIT.failed;
  },
};

async function attack(
  options: SelftestOptions,
  terminal: Terminal,
  report: (result: Result) => void,
): Promise<void> {
  const { peer, backends: places, echo } = options;
  if (places.length === 0) {
    const aim = { ...options, keyAddress: NOWHERE, ownBackend: false };
    return runAllChecks(peer, aim, echo ? ECHO_WITNESS : NO_WITNESS, report);
  }
  await using stack = new AsyncDisposableStack();
  const backends: RecordingBackend[] = [];
  for (const where of places) {
    const backend = stack.use(await startRecordingBackend(where));
    terminal.err(`the backend listens on ${backend.address}\n`);
    backends.push(backend);
  }
  const keyAddress = `http://${backends[0]?.address}${KEY_PATH}`;
  const aim = { ...options, keyAddress, ownBackend: true };
  await runAllChecks(peer, aim, recordingWitness(backends), report);
  for (const { address, used } of backends) {
    if (!used()) terminal.err(`the backend on ${address} got no request: is it a target?\n`);
  }
}

/** Replaces control characters: an echo may contain anything and must not control the terminal. */
function line({ verdict, name, seen }: Result): string {
  return `${verdict} ${name}  ${seen.replaceAll(/\p{Cc}/gu, "?")}\n`;
}
