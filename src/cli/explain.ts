import { explainAlone } from "../app/explanation/explain.ts";
import { SILENT_LOG } from "../app/explanation/silent.ts";
import type { Explanation } from "../core/explanation.ts";
import { systemClock } from "../lib/clock.ts";
import { askedRequest, QuestionError } from "../server/asked-request.ts";
import { loadSigningKeys } from "../tokens/signing-keys.ts";
import {
  CONFIGURATION_FLAGS,
  CONFIGURATION_HELP,
  configurationSources,
  parseFlags,
} from "./arguments.ts";
import { type Command, EXIT, UsageError } from "./command.ts";
import { explanationText } from "./explain/text.ts";
import { formatFrom } from "./format.ts";
import { inspect } from "./inspect.ts";
import { marksFor } from "./marks.ts";
import { TOKEN_FLAGS, tokenFrom } from "./token-argument.ts";

const text = { type: "string" } as const;

export const explain: Command = {
  help: `Usage: sallyport explain --url URL [options]

Tells what would become of a request, and why: the route, the verdict on the token step by step, the
groups, what goes to the backend. The code that decides is that of the proxy; nothing is sent. Exit code
0 when the request would be forwarded or answered, 1 when it would be refused.

      --url URL             https://host/path, http://host/path or /path; sent as it is written
      --method METHOD       default: GET
      --header 'NAME: VALUE'   may be given several times
      --token TOKEN         sent as Authorization: Bearer
      --token-file FILE     the same from a file, so that no list of programs shows it
      --client ADDRESS      where the connection comes from (default: 127.0.0.1)
      --format FORMAT       text (default) or json
${CONFIGURATION_HELP}
  -h, --help                this text

GET /-/explain?url=…&method=…&header=…&client=… on the admin listener asks a running proxy the same; the
token is that of its own Authorization header.`,
  async run(args, terminal) {
    const flags = parseFlags(args, {
      ...CONFIGURATION_FLAGS,
      ...TOKEN_FLAGS,
      ...{ url: text, method: text, client: text, format: text },
      header: { type: "string", multiple: true },
    });
    const format = formatFrom(flags.format, ["text", "json"]);
    const token = tokenFrom(flags);
    const asked = question(() =>
      askedRequest({
        method: flags.method ?? "GET",
        url: flags.url ?? "",
        headers: flags.header ?? [],
        authorization: token === undefined ? undefined : `Bearer ${token}`,
        peer: flags.client ?? "127.0.0.1",
      }),
    );
    const configuration = await inspect(configurationSources(flags, terminal));
    const { algorithm, keys: directory } = configuration.tokens;
    const keys = await loadSigningKeys({
      algorithm,
      log: SILENT_LOG,
      ...(directory && { directory }),
    });
    const found = await explainAlone({ configuration, keys, clock: systemClock }, asked);
    const note = "without tokens.keys the running proxy has a key of its own: ask its /-/explain";
    const withheld = directory === undefined && found.token !== undefined ? [note] : [];
    const told: Explanation = { ...found, notes: [...found.notes, ...withheld] };
    terminal.out(
      format === "json"
        ? `${JSON.stringify(told, undefined, 2)}\n`
        : explanationText(told, marksFor(terminal)),
    );
    return told.verdict.outcome === "refused" ? EXIT.failed : EXIT.done;
  },
};

function question<T>(ask: () => T): T {
  try {
    return ask();
  } catch (error) {
    if (error instanceof QuestionError) throw new UsageError(error.message);
    throw error;
  }
}
