import { type AdminResponse, type AdminPage, PLAIN_TEXT } from "../../core/admin-page.ts";

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
}

/**
 * `/livez`, `/startupz` and `/readyz` for Kubernetes. `?verbose` lists the checks; `/readyz?exclude=NAME` skips one.
 * An unknown name has no effect but is reported, the way the Kubernetes API server does (apiserver/pkg/server/healthz).
 */
export function probePages({ started, livenessFailures, checks }: ProbeSources): AdminPage[] {
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
      const all = await checks();
      const looked = all.map((check) =>
        excluded.includes(check.name) ? { ...check, passed: true, state: "excluded" } : check,
      );
      const ready = looked.every(({ passed }) => passed);
      const warnings = noMatches(excluded, all);
      return answerOf([ready ? "ready" : "not ready", ...warnings], looked, query);
    }),
  ];
}

function page(path: string, answer: AdminPage["answer"]): AdminPage {
  return { path, method: "GET", audience: "everybody", answer };
}

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
