import { SILENT_MS, SOON_MS, type Status, type StatusRefusal } from "../../../core/status.ts";
import { amount, bytes, clockTime, latency, moment, relative, span } from "./words.ts";

/**
 * What the status page and `sallyport top` say: each section, column and cell once. `render-status.ts` draws it for
 * browsers, `tools/top/top.ts` for terminals.
 */

type Tone = "good" | "bad" | "warn" | "soft" | "plain";

export interface Cell {
  readonly text: string;
  /** What a terminal shows instead, where space is scarce. */
  readonly short?: string;
  readonly tone?: Tone | undefined;
  /** How the page shows it. */
  readonly look?: "text" | "badge" | "strong" | "code" | "when" | "mono" | undefined;
  /** What only the page adds: beside it, and under the pointer. */
  readonly more?: string;
  readonly hover?: string;
}

export interface Table {
  readonly columns: readonly {
    /** Without a title, the column is left out: of the page, or of the terminal. */
    readonly title: string;
    readonly short: string;
    /** Numbers are aligned to the right. */
    readonly kind: "number" | "";
  }[];
  readonly rows: readonly (readonly Cell[])[];
}

/** How often something happened in each minute. */
export interface Series {
  readonly word: string;
  readonly counts: readonly number[];
  readonly total: number;
  readonly tone: Tone;
}

export interface Section<Content> {
  readonly title: string;
  /** A shorter title. */
  readonly link?: string;
  readonly note: string;
  readonly content: Content;
}

/**
 * @param titles `>` in front of a title aligns its column to the right; what follows `|` is the title in a terminal, if
 * that is not the same in capitals.
 */
function table(titles: readonly string[], rows: readonly (readonly (Cell | string)[])[]): Table {
  return {
    columns: titles.map((titled) => {
      const [title = "", short = title.toUpperCase()] = titled.replace(">", "").split("|");
      return { title, short, kind: titled.startsWith(">") ? "number" : "" };
    }),
    rows: rows.map((row) => row.map((cell) => (typeof cell === "string" ? { text: cell } : cell))),
  };
}

/** @param columns the title of each column, with its cell in a row. */
export function tableOf<Row>(
  rows: readonly Row[],
  columns: Readonly<Record<string, (row: Row, index: number) => Cell | string>>,
): Table {
  const cells = Object.values(columns);
  const shown = rows.map((row, index) => cells.map((cellOf) => cellOf(row, index)));
  return table(Object.keys(columns), shown);
}

export function badge(tone: Tone, text: string, short = text): Cell {
  return { text, short, tone, look: "badge" };
}

export function soft(text: string, look?: Cell["look"]): Cell {
  return { text, tone: "soft", look };
}

export function code(text: string, more: Partial<Cell> = {}): Cell {
  return { text, look: "code", ...more };
}

function strong(text: string, tone: Tone = "plain"): Cell {
  return { text, tone, look: "strong" };
}

/** Returns `ready`, why it is not, or `draining`. */
export function health({ state, ready, checks }: Status): Cell {
  if (state !== "serving") return badge("warn", state);
  if (ready) return badge("good", "ready");
  const failing = checks.filter(({ passed }) => !passed).map(({ name }) => name);
  return badge("bad", `not ready: ${failing.join(", ")}`);
}

/** Returns the mean rate per second since an earlier status; empty without one, or if the process has restarted. */
function rateOf(
  status: Status,
  before: Status | undefined,
  countIn: (status: Status) => number | undefined,
): string {
  const earlier = before?.startedAt === status.startedAt ? countIn(before) : undefined;
  const seconds = (status.now - (before?.now ?? 0)) / 1000;
  if (earlier === undefined || seconds <= 0) return "";
  return (Math.max(0, (countIn(status) ?? 0) - earlier) / seconds).toFixed(1);
}

/** A figure of the whole process: its name, its value, and what the page adds; a terminal shows `short` alone. */
type Fact = readonly [name: string, value: string, more: string, short: string];

/** @param before an earlier status, from which rates are computed. */
export function factsOf(status: Status, before?: Status) {
  const { now, startedAt, workers, memory, traffic, node, pid } = status;
  const { alive, count, answered } = workers;
  const up = span(now - startedAt);
  const requests = amount(traffic.requests);
  const rate = rateOf(status, before, (each) => each.traffic.requests);
  const asked = `${requests} requests${rate === "" ? "" : `, ${rate} a second`}`;
  const inFlight = amount(traffic.inFlight);
  const sockets = `${amount(traffic.webSockets)} WebSockets`;
  const tokens = amount(traffic.verifiedTokens);
  const serving = `${alive} of ${count}`;
  const silent = answered < alive ? `${alive - answered} did not answer` : undefined;
  const used = bytes(memory.residentBytes);
  const buffered = `${bytes(memory.bufferedBytes)} buffered · Node ${node}`;
  return {
    up: ["Up for", up, `since ${moment(startedAt)}`, `up ${up}`],
    requests: ["Requests", requests, "since the start", asked],
    inFlight: ["In flight", inFlight, sockets, `${inFlight} in flight  ${sockets}`],
    tokens: ["Verified tokens", tokens, "in the cache", `${tokens} tokens`],
    workers: ["Workers", serving, silent ?? `process ${pid}`, `${serving} workers`],
    memory: ["Memory", used, buffered, used],
  } as const satisfies Record<string, Fact>;
}

const LOGIN_TONES: Readonly<Record<string, Tone>> = { success: "good", bad_credentials: "warn" };

/** The sections that both show, by their ids, in the order of the page. */
export function sectionsOf(status: Status, before?: Status) {
  const { minutes } = status;
  const note = `the last ${minutes.length} minutes`;
  const refused = seriesOf(minutes, "refusals", () => "plain");
  const tried = seriesOf(minutes, "logins", (word) => LOGIN_TONES[word] ?? "bad");
  return {
    reasons: { title: "Refusals by reason", link: "Refusals", note, content: refused },
    logins: { title: "Logins", link: "Logins", note, content: tried },
    routes: routes(status, before),
    upstreams: upstreams(status),
    dependencies: dependencies(status),
    keys: keys(status),
    refusals: refusals(status),
  };
}

/** Returns one series for each word that occurred, the most frequent first. */
function seriesOf(
  minutes: Status["minutes"],
  kind: "logins" | "refusals",
  toneOf: (word: string) => Tone,
): Series[] {
  const words = new Set(minutes.flatMap((minute) => Object.keys(minute[kind])));
  return Array.from(words, (word) => {
    const counts = minutes.map((minute) => minute[kind][word] ?? 0);
    const total = counts.reduce((sum, count) => sum + count, 0);
    return { word, counts, total, tone: toneOf(word) };
  }).toSorted((a, b) => b.total - a.total);
}

function routes(status: Status, before?: Status): Section<Table> {
  const errors = (count: number, tone: Tone): Cell => {
    return { text: amount(count), tone: count === 0 ? "soft" : tone };
  };
  const asked = (wanted: string) => (each: Status) =>
    each.routes.find(({ name }) => name === wanted)?.requests;
  const note =
    "in the order in which they are tried; counts since the start, latencies of the last minutes";
  const content = tableOf(status.routes, {
    ">#|": (_, index) => String(index + 1),
    "Name|ROUTE": ({ name }) => strong(name),
    "Hosts|": ({ hosts }) => hosts?.join(", ") ?? soft("any"),
    Path: ({ hosts, path }) => code(path, { short: `${hosts?.join(",") ?? ""}${path}` }),
    "Methods|": ({ methods }) => methods?.join(", ") ?? soft("any"),
    Access: ({ access }) => (access === "public" ? badge("warn", access) : access),
    Upstream: ({ upstream }) => upstream,
    ">Requests": ({ requests }) => amount(requests),
    ">|/s": ({ name }) => rateOf(status, before, asked(name)),
    ">4xx|4xx": ({ clientErrors }) => errors(clientErrors, "warn"),
    ">5xx|5xx": ({ serverErrors }) => errors(serverErrors, "bad"),
    ">p50": (route) => latency(route.latency.p50),
    ">p99": (route) => latency(route.latency.p99),
  });
  return { title: "Routes", note, content };
}

type StatusTarget = Status["upstreams"][number]["targets"][number];

function healthOf({ reachable, state, oldestMs }: StatusTarget): Cell {
  if (!reachable) return badge("bad", state);
  if (oldestMs >= SILENT_MS) return badge("bad", "does not answer", "no answer");
  return state === "ok"
    ? badge("good", "accepts connections", state)
    : badge("warn", `left out: ${state}`, state);
}

/** Returns the targets that are not good, and everything else that Sallyport depends on that is not. */
export function illIn({ upstreams, dependencies }: Status) {
  const targets = upstreams.flatMap(({ name, targets }) =>
    targets.map((target) => ({ of: `upstream ${name} ${target.address}`, ...healthOf(target) })),
  );
  const others = dependencies.map(({ kind, name, state, words }) => {
    return { of: `${kind} ${name}`, tone: state, text: words };
  });
  return [...targets, ...others]
    .filter(({ tone }) => tone !== "good")
    .map(({ of, tone, text }) => ({ tone, words: `${of}: ${text}` }));
}

function upstreams(status: Status): Section<Table> {
  const oldestOf = ({ oldestMs }: StatusTarget): Cell => {
    const tone = oldestMs >= SILENT_MS ? "bad" : "plain";
    return oldestMs < 1_000 ? soft("") : { text: span(oldestMs), tone };
  };
  // The row of the first target shows what is known of the whole upstream.
  const rows = status.upstreams.flatMap(({ name, inFlight, waiting, targets }) =>
    targets.map((target, index) => ({
      target,
      whole: index === 0 ? [name, amount(inFlight), amount(waiting)] : [],
    })),
  );
  const note =
    "each target was asked for a connection just now; latencies until the first byte, of the last minutes";
  const content = tableOf(rows, {
    Upstream: ({ whole }) => strong(whole[0] ?? ""),
    Target: ({ target }) => code(target.address),
    Health: ({ target }) => healthOf(target),
    ">Oldest request|OLDEST": ({ target }) => oldestOf(target),
    ">p50": ({ target }) => latency(target.latency.p50),
    ">p99": ({ target }) => latency(target.latency.p99),
    ">In flight": ({ whole }) => whole[1] ?? "",
    ">Waiting": ({ whole }) => whole[2] ?? "",
  });
  return { title: "Upstreams", note, content };
}

const KEY_STATES = {
  signing: { tone: "good", text: "signs" },
  published: { tone: "plain", text: "will sign" },
  verifying: { tone: "plain", text: "verifies" },
  expired: { tone: "warn", text: "expired" },
} as const;

function keys({ keys: known, certificate, now }: Status): Section<Table> {
  const when = (at: number): Cell => {
    return { text: relative(at, now), look: "when", hover: moment(at) };
  };
  const endOf = (at: number): Cell => {
    return { ...when(at), tone: at <= now ? "bad" : at - now < SOON_MS ? "warn" : "plain" };
  };
  const rows = known.map((key): (Cell | string)[] => {
    const { kid, signs, algorithm, state, file, madeAt, verifiesUntil } = key;
    const { tone, text } = KEY_STATES[state];
    const [ofWhat, andWhat] = signs === "tokens" ? ["", ""] : [` of ${signs}`, `, ${signs}`];
    return [
      `${algorithm} key${ofWhat}`,
      code(kid, { more: file ?? "made at start, lost with the process" }),
      badge(tone, text, `${state}${andWhat}`),
      when(madeAt),
      verifiesUntil === undefined ? soft("never") : endOf(verifiesUntil),
    ];
  });
  if (certificate !== undefined) {
    const { subject, issuer, names, notAfter } = certificate;
    const by = issuer === subject ? "signed by itself" : `from ${issuer}`;
    rows.unshift([
      "Certificate",
      { text: subject, more: `${by}${names === "" ? "" : `; for ${names}`}` },
      notAfter <= now
        ? badge("bad", "ended", "certificate")
        : badge("good", "served", "certificate"),
      "",
      endOf(notAfter),
    ]);
  }
  const note = "what is served, and what signs tokens and assertions";
  const content = table(["What|", "Name|KEY", "State", "Made", "Ends"], rows);
  return { title: "Certificate and keys", link: "Keys", note, content };
}

function dependencies({ dependencies: rows, now }: Status): Section<Table> {
  const content = tableOf(rows, {
    "Depends on|DEPENDS ON": ({ kind }) => kind,
    Name: ({ name }) => strong(name),
    State: ({ state, words }) => badge(state, words),
    Since: ({ since }) =>
      since === undefined
        ? soft("")
        : { text: span(now - since), look: "when", hover: moment(since) },
  });
  const failing = rows.filter(({ state }) => state === "bad").length;
  const note = failing === 0 ? "nothing fails" : `${failing} of ${rows.length} fail`;
  return { title: "Dependencies", note, content };
}

/** Returns what a refused request asked for. */
export function requestLine({ method, host, path }: StatusRefusal): string {
  return method === "" ? "not readable" : `${method} ${host}${path}`;
}

function refusals(status: Status): Section<Table> {
  const count = status.refusals.length;
  const note = count === 0 ? "none yet" : `${count}, the newest first; open one to see why`;
  const content = tableOf(status.refusals, {
    "Time|REFUSED": ({ at }) => ({ text: clockTime(at), look: "mono" }),
    Status: (refusal) => strong(String(refusal.status), refusal.status >= 500 ? "bad" : "warn"),
    Reason: ({ reason }) => reason,
    Request: (refusal) => code(requestLine(refusal)),
    Client: ({ client }) => soft(client, "mono"),
  });
  return { title: "Last refusals", note, content };
}
