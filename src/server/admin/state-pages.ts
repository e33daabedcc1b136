/** Pages that show the state of the process, or change it. */
import { type AdminPage, type AdminResponse, PLAIN_TEXT } from "../../core/admin-page.ts";
import { describeProblem } from "../../core/config-problem.ts";
import type { Dependency, ReloadResult, Status, StatusConfiguration } from "../../core/status.ts";
import { withTimeout } from "../../lib/async/with-timeout.ts";
import { systemClock } from "../../lib/clock.ts";
import { SingleFlight } from "../../lib/async/single-flight.ts";

const OPEN_METRICS = "application/openmetrics-text";
const OPEN_METRICS_TYPE = `${OPEN_METRICS}; version=1.0.0; charset=utf-8`;

/**
 * How long peers outside `admin.allow` share one text, in milliseconds. Creating it takes several milliseconds, and
 * anyone who reaches the port may scrape at any rate.
 */
const CACHE_MS = 1_000;

/**
 * `/metrics`. Concurrent scrapes share one text.
 *
 * @param openText returns the same in the OpenMetrics format, for clients that request it; undefined if not supported.
 */
export function metricsPage(
  text: () => Promise<string>,
  type: string,
  openText: () => Promise<string> | undefined = () => undefined,
): AdminPage {
  const scrapes = new SingleFlight<AdminResponse>();
  const cache = new Map<string, { answer: Promise<AdminResponse>; until: number }>();

  async function scrape(format: string): Promise<AdminResponse> {
    const opened = format === OPEN_METRICS ? openText() : undefined;
    const body = Buffer.from(await (opened ?? text()));
    return { status: 200, type: opened === undefined ? type : OPEN_METRICS_TYPE, body };
  }

  function recent(format: string): Promise<AdminResponse> {
    const before = cache.get(format);
    if (before !== undefined && systemClock.monotonic() < before.until) return before.answer;
    const answer = scrapes.run(format, () => scrape(format));
    cache.set(format, { answer, until: systemClock.monotonic() + CACHE_MS });
    // A failure is not cached.
    answer.catch(() => cache.delete(format));
    return answer;
  }

  return page("/metrics", ({ headers, allowed }) => {
    const format = headers.accept?.includes(OPEN_METRICS) === true ? OPEN_METRICS : "text";
    return allowed ? scrapes.run(format, () => scrape(format)) : recent(format);
  });
}

/**
 * `GET /-/config`: the running configuration, in the form in which `sallyport config` shows the one on disk. Masks
 * secrets.
 */
export function configPage(view: () => StatusConfiguration): AdminPage {
  return restrictedPage("GET", "/-/config", () =>
    success("The configuration that is in force", view()),
  );
}

/** `GET /-/openapi`: the OpenAPI description of the main listener's own endpoints, without an envelope. */
export function openApiPage(describe: () => object): AdminPage {
  const type = "application/json";
  return restrictedPage("GET", "/-/openapi", () => {
    return { status: 200, type, body: JSON.stringify(describe()) };
  });
}

/** `POST /-/reload`: reloads the configuration and reports what changed, or what is wrong with it. */
export function reloadPage(reload: (by: string) => Promise<ReloadResult>): AdminPage {
  return restrictedPage("POST", "/-/reload", async ({ peer }) => {
    const result = await reload(peer);
    if (!result.successful) {
      const message = "The configuration was not reloaded: the one before stays in force";
      return failure(422, message, { problems: result.problems.map(describeProblem) });
    }
    const { changed, files, atRestart: needRestart } = result;
    return success("The configuration was reloaded", { changed, files, needRestart });
  });
}

/** The progress of a drain: `drained` when no request is running any more. */
export type DrainState = "serving" | "draining" | "drained";

const DRAIN_MESSAGES: Readonly<Record<DrainState, string>> = {
  serving: "Requests are served",
  draining: "The traffic is being drained",
  drained: "The traffic is drained",
};

interface DrainControl {
  readonly state: () => DrainState;
  /** Starts draining, unless it has already started. @param by the address of the peer. */
  readonly begin: (by: string) => void;
}

/** `/-/drain`: POST starts draining, GET shows the progress. Both respond at once, so that no client times out. */
export function drainPages({ state, begin }: DrainControl): AdminPage[] {
  const progress = (status: number): AdminResponse =>
    success(DRAIN_MESSAGES[state()], { state: state() }, status);
  return [
    restrictedPage("GET", "/-/drain", () => progress(200)),
    restrictedPage("POST", "/-/drain", ({ peer }) => {
      begin(peer);
      return progress(202);
    }),
  ];
}

/** One condition of readiness. */
export interface ReadinessCheck {
  readonly name: string;
  readonly passed: boolean;
  /** A word that describes its state. */
  readonly state: string;
}

export interface ProbeSources {
  /** Whether everything is loaded and listening. */
  readonly started: () => boolean;
  /** Failures that only a restart of the process can repair. */
  readonly livenessFailures: () => readonly string[];
  readonly checks: () => readonly ReadinessCheck[] | Promise<readonly ReadinessCheck[]>;
  /** What `/readyz?verbose` adds. It does not decide. */
  readonly dependencies: () => Promise<readonly Dependency[]>;
}

/**
 * `/livez`, `/startupz` and `/readyz` for Kubernetes. `?verbose` lists the checks; `/readyz?exclude=NAME` skips one.
 * An unknown name has no effect but is reported, the way the Kubernetes API server does (apiserver/pkg/server/healthz).
 */
export function probePages({
  started,
  livenessFailures,
  checks,
  dependencies,
}: ProbeSources): AdminPage[] {
  const flights = new SingleFlight<readonly Dependency[]>();
  return [
    page("/livez", () => {
      const found = livenessFailures();
      if (found.length === 0) return { status: 200, type: PLAIN_TEXT, body: "ok\n" };
      return { status: 503, type: PLAIN_TEXT, body: `${found.join("\n")}\n` };
    }),
    page("/startupz", ({ query }) => {
      const done = started();
      const check = { name: "started", passed: done, state: done ? "yes" : "no" };
      return answerOf([done ? "started" : "starting"], [check], query);
    }),
    page("/readyz", async ({ query }) => {
      const excluded = query.getAll("exclude");
      const [all, more] = await Promise.all([
        checks(),
        query.has("verbose")
          ? withTimeout(flights.run("dependencies", dependencies), DEPENDENCIES_MS, [])
          : [],
      ]);
      const looked = all.map((check) =>
        excluded.includes(check.name) ? { ...check, passed: true, state: "excluded" } : check,
      );
      const ready = looked.every(({ passed }) => passed);
      const warnings = noMatches(excluded, all);
      const rows = more.map(({ kind, name, state, words }) => ({
        name: kind,
        passed: true,
        state: `${name} ${state === "bad" ? "fails: " : ""}${words}`,
      }));
      return answerOf([ready ? "ready" : "not ready", ...warnings], [...looked, ...rows], query);
    }),
  ];
}

/** How long `/readyz?verbose` waits for what it adds, in milliseconds: the kubelet waits for a second. */
const DEPENDENCIES_MS = 800;

/** Warns about excluded checks that do not exist. */
function noMatches(excluded: readonly string[], checks: readonly ReadinessCheck[]): string[] {
  const names = checks.map(({ name }) => name);
  const unknown = excluded.filter((name) => !names.includes(name));
  if (unknown.length === 0) return [];
  const [wrong, known] = [unknown, names].map((each) =>
    each.map((name) => JSON.stringify(name)).join(", "),
  );
  return [
    `warn: some health checks cannot be excluded: no matches for ${wrong}; there is ${known}`,
  ];
}

function answerOf(
  summary: readonly string[],
  checks: readonly ReadinessCheck[],
  query: URLSearchParams,
): AdminResponse {
  const details = query.has("verbose") ? checks.map(({ name, state }) => `${name}: ${state}`) : [];
  return {
    status: checks.every(({ passed }) => passed) ? 200 : 503,
    type: PLAIN_TEXT,
    body: `${[...summary, ...details].join("\n")}\n`,
  };
}

/** `GET /-/`: the status as a page for browsers. `GET /-/status`: the same as JSON. Concurrent requests share one reading. */
export function statusPages(collect: () => Promise<Status>): AdminPage[] {
  const flights = new SingleFlight<Status>();
  const read = (): Promise<Status> => flights.run("status", collect);
  return [
    restrictedPage("GET", "/-/", async ({ query }) => {
      // Loaded on first use: most processes never show the page.
      const [{ renderStatus }, { CONTENT_SECURITY_POLICY }] = await Promise.all([
        import("./status/render-status.ts"),
        import("./status/style.ts"),
      ]);
      return {
        status: 200,
        type: "text/html; charset=utf-8",
        body: renderStatus(await read(), query.has("refresh")),
        headers: {
          "Content-Security-Policy": CONTENT_SECURITY_POLICY,
          // `same-origin` would let in a page of the same policy that another server has left at this address.
          "Cross-Origin-Opener-Policy": "noopener-allow-popups",
          "Cross-Origin-Resource-Policy": "same-origin",
          "Referrer-Policy": "no-referrer",
          "X-Frame-Options": "DENY",
        },
      };
    }),
    restrictedPage("GET", "/-/status", async () =>
      success("The status of the proxy", await read()),
    ),
  ];
}

/** Creates a page for everybody. */
export function page(path: string, answer: AdminPage["answer"]): AdminPage {
  return { path, method: "GET", audience: "everybody", answer };
}

/** Creates a page that only peers in `admin.allow` may request. */
export function restrictedPage(
  method: AdminPage["method"],
  path: string,
  answer: AdminPage["answer"],
): AdminPage {
  return { path, method, audience: "allowed", answer };
}

export function success(message: string, fields: object, status = 200): AdminResponse {
  return { status, json: { message, success: true, ...fields } };
}

export function failure(status: number, message: string, fields: object = {}): AdminResponse {
  return { status, json: { message, success: false, ...fields } };
}
