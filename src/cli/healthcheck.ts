import { codeOrMessage } from "../lib/text/error-code.ts";
import { adminAddress, askAdmin } from "./admin-address.ts";
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
    const { url } = await adminAddress(flags, terminal, PATH);
    const late = `nothing within ${TIMEOUT_MS} ms`;
    const asked = askAdmin(url, { timeoutMs: TIMEOUT_MS, late });
    const answer = await asked.then((response) => response.destroy().statusCode, codeOrMessage);
    if (answer === 200) {
      terminal.out("ready\n");
      return EXIT.done;
    }
    terminal.err(`sallyport healthcheck: ${url.href} says ${answer}\n`);
    return EXIT.failed;
  },
};
