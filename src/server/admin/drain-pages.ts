import type { AdminResponse, AdminPage } from "../../core/admin-page.ts";

/** The progress of a drain: `drained` when no request is running any more. */
export type DrainState = "serving" | "draining" | "drained";

const MESSAGES: Readonly<Record<DrainState, string>> = {
  serving: "Requests are served",
  draining: "The traffic is being drained",
  drained: "The traffic is drained",
};

export interface DrainControl {
  readonly state: () => DrainState;
  /** Starts draining, unless it has already started. */
  readonly begin: () => void;
}

/** `/-/drain`: POST starts draining, GET shows the progress. Both respond at once, so that no client times out. */
export function drainPages({ state, begin }: DrainControl): AdminPage[] {
  const page = { path: "/-/drain", audience: "allowed" } as const;
  return [
    { ...page, method: "GET", answer: () => answerOf(200, state()) },
    {
      ...page,
      method: "POST",
      answer() {
        begin();
        return answerOf(202, state());
      },
    },
  ];
}

function answerOf(status: number, state: DrainState): AdminResponse {
  return { status, json: { message: MESSAGES[state], success: true, state } };
}
