import {
  type AdminAnswer,
  type AdminPage,
  type AdminRequest,
  JSON_TYPE,
} from "../core/admin-page.ts";

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
      answer(request) {
        if (isOfPage(request)) return refusal;
        begin();
        return answerOf(202, state());
      },
    },
  ];
}

/**
 * Whether a web page asks: the browser of somebody who has forwarded the port to his own machine is on the loopback, and any
 * page that he opens can send a POST there. Browsers name the page in `Origin`; commands send none.
 */
function isOfPage({ headers }: AdminRequest): boolean {
  return headers.origin !== undefined || headers["sec-fetch-site"] !== undefined;
}

const refusal: AdminAnswer = {
  status: 403,
  type: JSON_TYPE,
  body: `${JSON.stringify({ message: "A web page may not ask for this", success: false })}\n`,
};

function answerOf(status: number, state: DrainState): AdminAnswer {
  return { status, type: JSON_TYPE, body: `${JSON.stringify({ state, success: true })}\n` };
}
