import { type Command, EXIT, type Terminal } from "./command.ts";
import { runAllChecks } from "./selftest/all-checks.ts";
import type { Result, Verdict } from "./selftest/check.ts";
import { readOptions, type SelftestOptions } from "./selftest/options.ts";
import { KEY_PATH, startRecordingBackend } from "./selftest/recording-backend.ts";
import { ECHO_SHAPE, ECHO_WITNESS, NO_WITNESS, recordingWitness } from "./selftest/witness.ts";

/** Where nobody listens (RFC 6761 §6.4): a hostile token says that its key is there. */
const NOWHERE = "http://selftest.invalid";

export const selftest: Command = {
  help: `Usage: sallyport selftest --url URL --token TOKEN [options]

Attacks a deployment of your own: framing, paths, headers and tokens, in exact bytes. One line for each
check, PASS, FAIL or SKIP, its name, and what was seen. Exit code 0, or 1 when a check fails.

      --url URL             https://host:8443, or http where TLS is done in front
      --token TOKEN         a token that is good on the protected path
      --token-file FILE     the same from a file, so that no list of programs shows it
      --ca FILE             the authority of the deployment's certificate, PEM
      --insecure            accepts any certificate
      --backend HOST:PORT   listens there, or on unix:PATH, as a backend that remembers what reaches it;
                            an upstream of the deployment must point at it
      --echo PATH           what is below this protected path is answered by an echo backend
      --protected PATH      a path that needs the token (default: the echo's, else /)
      --public PATH         a path that needs none, for the attacks that come through it
      --jwks FILE           public keys of the deployment, for tokens that are signed with them
      --timeout DURATION    for each answer (default: 5s)
      --format FORMAT       text (default) or json
  -h, --help                this text

Without --backend and --echo only what the client sees is judged, and checks on what arrives are skipped.
${ECHO_SHAPE}
Run it from an address that is not in server.trustedProxies, and with limits of requests that let a few
hundred through. The token is sent to the deployment and never printed.`,
  async run(args, terminal) {
    const options = readOptions(args);
    const results: Result[] = [];
    await attack(options, terminal, (result) => {
      results.push(result);
      if (options.format === "text") terminal.out(line(result));
    });
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
  tell: (result: Result) => void,
): Promise<void> {
  const { peer, backend: where, echo } = options;
  if (where === undefined) {
    const aim = { ...options, keyAddress: NOWHERE, ownBackend: false };
    return runAllChecks(peer, aim, echo ? ECHO_WITNESS : NO_WITNESS, tell);
  }
  await using backend = await startRecordingBackend(where);
  terminal.err(`the backend listens on ${backend.address}\n`);
  const keyAddress = `http://${backend.address}${KEY_PATH}`;
  const aim = { ...options, keyAddress, ownBackend: true };
  await runAllChecks(peer, aim, recordingWitness(backend), tell);
}

/** What an echo says may hold anything, and must not steer the terminal. */
function line({ verdict, name, seen }: Result): string {
  return `${verdict} ${name}  ${seen.replaceAll(/\p{Cc}/gu, "?")}\n`;
}
