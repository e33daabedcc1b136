import { type AdminAnswer, type AdminPage, JSON_TYPE } from "../core/admin-page.ts";

/** How far the end of the traffic is: `drained` when nothing runs any more. */
export type DrainState = "serving" | "draining" | "drained";

export interface DrainControl {
  readonly state: () => DrainState;
  /** Begins, unless it has begun. */
  readonly begin: () => void;
}

/** `/-/drain`: POST begins, GET tells how far it is. Answered at once, so that nobody's time limit ends the asking. */
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

function answerOf(status: number, state: DrainState): AdminAnswer {
  return { status, type: JSON_TYPE, body: `${JSON.stringify({ state, success: true })}\n` };
}
