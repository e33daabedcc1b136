import { explainAlone } from "../app/explanation/dry-run.ts";
import { explainerFrom } from "../app/explanation/dry-run-gate.ts";
import { inspect } from "../app/inspection.ts";
import type { Explanation } from "../core/explanation.ts";
import { createDryRunRequest, ExplainQueryError } from "../server/admin/explain-query.ts";
import {
  CONFIGURATION_FLAGS,
  CONFIGURATION_HELP,
  configurationSources,
  parseFlags,
} from "./arguments.ts";
import { type Command, EXIT, UsageError } from "./command.ts";
import { explanationText } from "./explain/text.ts";
import { formatFrom } from "./terminal/format.ts";
import { marksFor } from "./terminal/marks.ts";
import { ASKED_HELP, askRunningProxy } from "./token/asked-revocation.ts";
import { TOKEN_FLAGS, tokenFrom } from "./token/token-argument.ts";

const text = { type: "string" } as const;

export const explain: Command = {
  help: `Usage: sallyport explain --url URL [options]

Shows what would happen to a request, and why: the route, each step of the token check, the
requirements of the route, and the request that the backend would get. It runs the proxy's own code and
sends nothing to the backend. Exit code 0 if the request would be forwarded or answered, 1 if it would be
refused.

${ASKED_HELP}

      --url URL             https://host/path, http://host/path or /path; used as written
      --method METHOD       default: GET
      --header 'NAME: VALUE'   repeatable
      --token TOKEN         sent as Authorization: Bearer
      --token-file FILE     reads the token from a file, so that no process list shows it
      --client ADDRESS      the address of the client's connection (default: 127.0.0.1)
      --format text|json    default: text
${CONFIGURATION_HELP}
  -h, --help                this text

To ask a running proxy, use GET /-/explain?url=…&method=…&header=…&client=… on the admin listener, with
the token in the Authorization header.`,
  async run(args, terminal) {
    const flags = parseFlags(args, {
      ...CONFIGURATION_FLAGS,
      ...TOKEN_FLAGS,
      url: text,
      method: text,
      client: text,
      format: text,
      header: { type: "string", multiple: true },
    });
    const { url } = flags;
    if (url === undefined) throw new UsageError("--url is missing");
    const format = formatFrom(flags.format, ["text", "json"]);
    const token = tokenFrom(flags);
    const dryRun = parsed(() =>
      createDryRunRequest({
        method: flags.method ?? "GET",
        url,
        headers: flags.header ?? [],
        authorization: token === undefined ? undefined : `Bearer ${token}`,
        peer: flags.client ?? "127.0.0.1",
      }),
    );
    const snapshot = await inspect(configurationSources(flags, terminal));
    const askRevocation = askRunningProxy(snapshot.configuration);
    const explainer = { ...(await explainerFrom(snapshot)), askRevocation };
    const found = await explainAlone(explainer, dryRun);
    const note = "without tokens.keys, the running proxy has its own key: use its /-/explain";
    const madeNow = snapshot.configuration.tokens.keys === undefined;
    const withheld = madeNow && found.token !== undefined ? [note] : [];
    const explanation: Explanation = { ...found, notes: [...found.notes, ...withheld] };
    terminal.out(
      format === "json"
        ? `${JSON.stringify(explanation, undefined, 2)}\n`
        : explanationText(explanation, marksFor(terminal)),
    );
    return explanation.verdict.outcome === "refused" ? EXIT.failed : EXIT.done;
  },
};

function parsed<T>(ask: () => T): T {
  try {
    return ask();
  } catch (error) {
    if (error instanceof ExplainQueryError) throw new UsageError(error.message);
    throw error;
  }
}
