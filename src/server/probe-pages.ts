import { type AdminAnswer, type AdminPage, PLAIN_TEXT } from "../core/admin-page.ts";

/** One thing that readiness depends on. */
export interface ReadinessCheck {
  readonly name: string;
  readonly passed: boolean;
  /** A word on how it is. */
  readonly state: string;
}

export interface ProbeSources {
  /** Whether everything is loaded and listening. */
  readonly started: () => boolean;
  readonly checks: () => readonly ReadinessCheck[] | Promise<readonly ReadinessCheck[]>;
}

/**
 * `/livez`, `/startupz` and `/readyz`, as Kubernetes asks them. With `?verbose` they tell what was looked at;
 * `/readyz?exclude=NAME` leaves a check out.
 */
export function probePages({ started, checks }: ProbeSources): AdminPage[] {
  return [
    page("/livez", () => ({ status: 200, type: PLAIN_TEXT, body: "ok\n" })),
    page("/startupz", ({ query }) => {
      const done = started();
      const check = { name: "started", passed: done, state: done ? "yes" : "no" };
      return answerOf(done ? "started" : "starting", [check], query);
    }),
    page("/readyz", async ({ query }) => {
      const excluded = query.getAll("exclude");
      const looked = (await checks()).map((check) =>
        excluded.includes(check.name) ? { ...check, passed: true, state: "excluded" } : check,
      );
      const ready = looked.every(({ passed }) => passed);
      return answerOf(ready ? "ready" : "not ready", looked, query);
    }),
  ];
}

function page(path: string, answer: AdminPage["answer"]): AdminPage {
  return { path, method: "GET", audience: "everybody", answer };
}

function answerOf(
  summary: string,
  checks: readonly ReadinessCheck[],
  query: URLSearchParams,
): AdminAnswer {
  const details = query.has("verbose") ? checks.map(({ name, state }) => `${name}: ${state}`) : [];
  return {
    status: checks.every(({ passed }) => passed) ? 200 : 503,
    type: PLAIN_TEXT,
    body: `${[summary, ...details].join("\n")}\n`,
  };
}
