import { codeOrMessage } from "../lib/text/error-code.ts";
import { get } from "../lib/http/node-http.ts";
import { configuredAddress, givenAddress } from "./admin-address.ts";
import { CONFIGURATION_FLAGS, CONFIGURATION_HELP, parseFlags } from "./arguments.ts";
import { type Command, EXIT } from "./command.ts";

const PATH = "/readyz";
const TIMEOUT_MS = 3_000;

export const healthcheck: Command = {
  help: `Usage: sallyport healthcheck [options]

Requests /readyz of the admin listener, with a timeout of 3 seconds. Exit code 0 if the proxy is ready,
1 if not. The command connects to the address of admin.listen; without a configuration file, to
127.0.0.1:9464.

${CONFIGURATION_HELP}
      --url URL         connects there and reads no configuration, such as http://127.0.0.1:9464
  -h, --help            this text`,
  async run(args, terminal) {
    const flags = parseFlags(args, { ...CONFIGURATION_FLAGS, url: { type: "string" } });
    const { url } =
      flags.url === undefined
        ? await configuredAddress(flags, terminal, PATH)
        : givenAddress(flags.url, PATH);
    const answer = await statusOf(url);
    if (answer === 200) {
      terminal.out("ready\n");
      return EXIT.done;
    }
    terminal.err(`sallyport healthcheck: ${url.href} says ${answer}\n`);
    return EXIT.failed;
  },
};

/** Returns the status of the response, or why there is none. */
async function statusOf(url: URL): Promise<number | string> {
  const { promise, resolve } = Promise.withResolvers<number | string>();
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const sent = get(url, { agent: false, signal }, (response) => {
    response.destroy();
    resolve(response.statusCode ?? 0);
  });
  sent.on("error", (error) => {
    resolve(signal.aborted ? `nothing within ${TIMEOUT_MS} ms` : codeOrMessage(error));
  });
  return promise;
}
