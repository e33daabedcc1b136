import { explainAlone } from "../app/explanation/dry-run.ts";
import { explainerFrom } from "../app/explanation/dry-run-gate.ts";
import { inspect } from "../app/inspection.ts";
import type {
  ExplainedBackend,
  ExplainedRequirement,
  ExplainedRoute,
  ExplainedStep,
  ExplainedToken,
  ExplainedVerdict,
  Explanation,
} from "../core/explanation.ts";
import { createDryRunRequest, ExplainQueryError } from "../server/admin/explain-page.ts";
import {
  CONFIGURATION_FLAGS,
  CONFIGURATION_HELP,
  configurationSources,
  parseFlags,
  wordAs,
} from "./arguments.ts";
import { type Command, EXIT, UsageError } from "./command.ts";
import { columns, formatFrom, type Marks, marksFor } from "./terminal/format.ts";
import { ASKED_HELP, askRunningProxy } from "./token/asked-revocation.ts";
import { TOKEN_FLAGS, tokenFrom } from "./token/token-argument.ts";
import { formatDuration, formatSeconds, formatSize } from "../lib/text/duration.ts";
import { printableLines } from "../lib/text/printable.ts";
import { requirementLine } from "../policy/authorize.ts";

/** Renders an explanation for people. Values of the request cannot control the terminal. */
export function explanationText(found: Explanation, marks: Marks): string {
  const { verdict, request, routes, token, requirements, backend, notes } = found;
  const sections = [
    [verdictLine(verdict, backend, marks)],
    request === undefined
      ? []
      : [
          "Request",
          `  ${request.method} ${request.path} on ${request.host || "no host"}${request.secure ? " over TLS" : ""}${request.protocol === "websocket" ? ", to open a WebSocket" : ""}`,
          ...(request.matchPath === request.path ? [] : [`  matched as ${request.matchPath}`]),
          `  from ${request.client}${request.client === request.peer ? "" : ` through ${request.peer}`}${request.peerTrusted ? ", a trusted proxy" : ""}`,
        ],
    ["Routes, in the order in which they are tried", ...routeLines(routes, marks)],
    token === undefined ? [] : tokenLines(token, marks),
    requirements.length === 0 ? [] : requirementLines(requirements, marks),
    backend === undefined ? [] : backendLines(backend),
    notes.length === 0 ? [] : ["Notes", ...notes.map((note) => `  ${note}`)],
  ];
  const text = sections.flatMap((lines) => (lines.length === 0 ? [] : [lines.join("\n")]));
  return `${printableLines(text.join("\n\n"))}\n`;
}

function verdictLine(
  { outcome, status, reason, detail, route, wouldDeny }: ExplainedVerdict,
  backend: ExplainedBackend | undefined,
  marks: Marks,
): string {
  switch (outcome) {
    case "forwarded":
      return wouldDeny === undefined
        ? `${marks.good} ${backend === undefined ? "may pass" : `forwarded to ${backend.upstream}`} by the route ${route}`
        : `${marks.warning} forwarded without identity, since ${route} is in monitor mode; would be refused: ${wouldDeny}`;
    case "answered":
      return `${marks.good} answered by Sallyport itself: ${route}`;
    case "refused":
      return `${marks.bad} refused with ${status}: ${reason}${detail === undefined ? "" : ` (${detail})`}`;
  }
}

function routeLines(routes: readonly ExplainedRoute[], marks: Marks): string[] {
  const rows = routes.map((route) => [
    route.result === "taken" ? marks.good : route.result === "not tried" ? " " : marks.skipped,
    route.name,
    route.hosts?.join(",") ?? "any host",
    route.path,
    route.methods?.join(",") ?? "any method",
    route.misfits.length === 0 ? route.result : `another ${route.misfits.join(", another ")}`,
  ]);
  return columns(rows).map((line) => `  ${line}`);
}

/** Renders the verdict on a token, a line for each step. */
export function stepLines(steps: readonly ExplainedStep[], marks: Marks): string[] {
  const { good, bad, skipped } = marks;
  const sign = { ok: good, failed: bad, "not reached": skipped, "not checked": skipped } as const;
  return steps.map(({ step, result, detail }) =>
    `  ${sign[result]} ${step.padEnd(9)}  ${detail || result}`.trimEnd(),
  );
}

function tokenLines({ accepted, reason, steps, ...caller }: ExplainedToken, marks: Marks) {
  const left = caller.timeLeftMs === undefined ? "" : `, ${formatSeconds(caller.timeLeftMs)} left`;
  const verdict = accepted ? `accepted${left}` : `not accepted: ${reason}`;
  const from = caller.place === undefined ? "" : ` in ${caller.place}`;
  const lines = [`Token${from}, ${verdict}`, ...stepLines(steps, marks)];
  if (caller.subject !== undefined) {
    lines.push(`    claims to be ${caller.subject}, from ${caller.issuer ?? "nobody"}`);
  }
  return lines;
}

/** Renders the requirements of the route, one per line, and whether the caller meets each. */
function requirementLines(found: readonly ExplainedRequirement[], marks: Marks): string[] {
  const lines = found.map((each) => {
    const { required, held } = requirementLine(each);
    return `  ${each.met ? marks.good : marks.bad} ${required}; held: ${held}`;
  });
  return ["Requirements", ...lines];
}

const PROTOCOLS: Readonly<Record<string, string>> = {
  http1: "HTTP/1.1",
  http2: "HTTP/2",
  h2c: "HTTP/2 without TLS (h2c)",
  auto: "HTTP/2 or HTTP/1.1, as TLS negotiates",
};

function backendLines(backend: ExplainedBackend) {
  const { targets, path, queryBytes, headers, timeouts, limits } = backend;
  const { connect, response, idle, queue } = timeouts;
  const { rate, bodyBytes } = limits;
  const query = queryBytes === 0 ? "" : ` and its query of ${queryBytes} bytes`;
  return [
    "Backend",
    `  target    ${targets.join(", ")}${backend.balance === undefined ? "" : ` (${backend.balance})`}`,
    `  protocol  ${PROTOCOLS[backend.protocol] ?? backend.protocol}`,
    `  path      ${path}${query}`,
    `  timeouts  connect ${formatDuration(connect)}, answer ${formatDuration(response)}, silence ${formatDuration(idle)}, queue ${formatDuration(queue)}`,
    `  limits    body ${bodyBytes === undefined ? "unlimited" : formatSize(bodyBytes)}, ${limits.connections} connections to each target, ${limits.queue} requests waiting`,
    ...(rate === undefined
      ? []
      : [
          `  rate      ${rate.requests} in ${formatDuration(rate.withinMs)}, ${rate.burst} at once, by ${rate.by}`,
        ]),
    ...moreLines(backend),
    ...headers.removed.map((name) => `  removed   ${name}`),
    ...headers.kept.map((name) => `  kept      ${name}`),
    ...headers.added.map(([name, value]) => `  added     ${name}: ${value}`),
  ];
}

/** Renders the retries and the mirror of the route. */
function moreLines({ retry, mirror }: ExplainedBackend): string[] {
  const { attempts, on } = retry;
  const times = attempts === 1 ? "once more" : `${attempts} times more`;
  return [
    `  retry     ${attempts === 0 ? "never" : `${times}, on ${on.join(", ")}`}`,
    ...(mirror === undefined ? [] : [`  mirror    ${mirror.percent} % to ${mirror.upstream}`]),
  ];
}

const text = { type: "string" } as const;

const FLAGS = {
  ...CONFIGURATION_FLAGS,
  ...TOKEN_FLAGS,
  url: text,
  method: text,
  client: text,
  format: text,
  header: { type: "string", multiple: true },
} as const;

export const explain: Command = {
  help: `Usage: sallyport explain URL [options]

Shows what would happen to a request, and why: the route, each step of the token check, the
requirements of the route, and the request that the backend would get. It runs the proxy's own code and
sends nothing to the backend. Exit code 0 if the request would be forwarded or answered, 1 if it would be
refused.

${ASKED_HELP}

      --url URL             the same as URL: https://host/path, http://host/path or /path; used as written
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
    const flags = parseFlags(wordAs("url", args, FLAGS), FLAGS);
    const { url } = flags;
    if (url === undefined) throw new UsageError("needs a URL, such as /orders");
    const format = formatFrom(flags.format, ["text", "json"]);
    const token = tokenFrom(flags);
    const dryRun = parsed(() =>
      createDryRunRequest({
        method: flags.method ?? "GET",
        url,
        headers: [
          ...(flags.header ?? []),
          ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
        ],
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
