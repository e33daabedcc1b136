import type { Arrival, Expectation, Observed, Sight } from "./check.ts";

/** What refuses a request itself: neither a missing token nor what a backend says about its addresses. */
const REFUSALS = new Set([400, 405, 408, 411, 413, 414, 417, 421, 426, 431, 501, 505]);
const TURNED_AWAY = new Set([...REFUSALS, 401, 403]);
/** An address that is not there: the deployment's word, or the backend's. */
const NOT_FOUND = 404;

/** @returns whether the deployment refused the request as such. */
export function isRefusal(status: number): boolean {
  return REFUSALS.has(status);
}

export const pass = (seen: string): Sight => ({ verdict: "PASS", seen });
export const fail = (seen: string): Sight => ({ verdict: "FAIL", seen });
export const skip = (seen: string): Sight => ({ verdict: "SKIP", seen });

/** Why a check is skipped that is about what arrives. */
const UNSEEN = "what reached the backend is not seen";

/** Nothing arrives, the one answer is a refusal, and the connection ends: what follows on it is not served. */
export const refused: Expectation = {
  close: true,
  judge(observed) {
    const turned = judgeAbsence(observed, REFUSALS);
    if (turned.verdict !== "PASS") return turned;
    if (observed.answers.length > 1) return fail(`${told(observed)}: what followed was served`);
    if (observed.end === "open") return fail(`${told(observed)}, but the connection stayed open`);
    return pass(`${turned.seen}, closed`);
  },
};

/** Nothing arrives, and the answer is that of a caller who may not. */
export const turnedAway: Expectation = {
  close: false,
  judge: (observed) => judgeAbsence(observed, TURNED_AWAY),
};

function judgeAbsence(observed: Observed, statuses: ReadonlySet<number>): Sight {
  const [reached] = observed.arrived ?? [];
  if (reached !== undefined) return fail(`it reached the backend as ${shown(reached)}`);
  const [first] = observed.answers;
  if (first === undefined) {
    return observed.end === "closed" ? pass("no answer, closed") : fail("no answer in time");
  }
  if (statuses.has(first.status)) return pass(told(observed));
  if (first.status === NOT_FOUND && statuses === TURNED_AWAY) {
    return observed.arrived === undefined
      ? skip(`404, which may be the backend's; ${UNSEEN}`)
      : pass(told(observed));
  }
  return fail(told(observed));
}

/** Arrives once with its own method and body, or is refused; nothing else arrives but the request that follows. */
export function intact(method: string, body: (mark: string) => string): Expectation {
  return {
    close: false,
    judge(observed, mark) {
      if (observed.arrived === undefined) return skip(UNSEEN);
      const strange = observed.arrived.find(
        ({ url }) => !url.includes(`${mark}/attack`) && !url.includes(`${mark}/following`),
      );
      if (strange !== undefined) return fail(`the backend ran the body as ${shown(strange)}`);
      return judgeArrival(observed, (arrival) => {
        if (arrival.method !== method) return fail(`it arrived as ${shown(arrival)}`);
        const sent = body(mark);
        const { body: got = sent } = arrival;
        return got === sent
          ? pass(`arrived once, with ${sent.length} bytes of body`)
          : fail(`it arrived with ${got.length} bytes of body, not with its ${sent.length}`);
      });
    },
  };
}

/** Stands in everything that a try claims and may not. */
export const forgery = (mark: string): string => `forged-${mark}`;
/** A network for documents (RFC 5737), from which no client of a deployment comes. */
export const FORGED_ADDRESS = "203.0.113.7";

/** Names that are told one by one. */
const FEW = 5;

/** Arrives without anything forged, or is refused. */
export const withoutForgery: Expectation = {
  close: false,
  judge(observed, mark) {
    if (observed.arrived === undefined) return skip(UNSEEN);
    return judgeArrival(observed, ({ fields }) => {
      const forged = fields.filter(
        ([, value]) => value.includes(forgery(mark)) || value.includes(FORGED_ADDRESS),
      );
      if (forged.length === 0) return pass("arrived without it");
      const names = [...new Set(forged.map(([name]) => name))];
      const more = names.length > FEW ? ` and ${names.length - FEW} more` : "";
      return fail(`the backend got ${names.slice(0, FEW).join(", ")}${more}`);
    });
  },
};

/** Arrives once, and then what is said of it. */
export function arrives(judge: (arrival: Arrival, mark: string) => Sight): Expectation {
  return {
    close: false,
    judge(observed, mark) {
      if (observed.arrived === undefined) return skip(UNSEEN);
      return observed.arrived.length === 0
        ? fail(`${told(observed)}, and it did not arrive`)
        : judgeArrival(observed, (arrival) => judge(arrival, mark));
    },
  };
}

/** The one arrival of the attack; without one, the deployment must have refused it. */
function judgeArrival(observed: Observed, judge: (arrival: Arrival) => Sight): Sight {
  const attacks = (observed.arrived ?? []).filter(({ url }) => !url.endsWith("/following"));
  const [first, ...more] = attacks;
  if (more.length > 0) return fail(`it arrived ${attacks.length} times`);
  if (first !== undefined) return judge(first);
  const { status = 0 } = observed.answers[0] ?? {};
  if (isRefusal(status)) return pass(`${status}, nothing arrived`);
  return fail(`${told(observed)}, and it did not arrive`);
}

function told({ answers }: Observed): string {
  return answers.length === 0 ? "no answer" : answers.map(({ status }) => status).join(", ");
}

/** In quotes, and short: a backend may have been told anything. */
export function shown({ method, url }: Arrival): string {
  const text = JSON.stringify(url);
  return `${method} ${text.length > 100 ? `${text.slice(0, 100)}…` : text}`;
}
