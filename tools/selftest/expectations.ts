import type { Arrival, Expectation, Observed, Judgement } from "./check-result.ts";
import type { Target } from "./deployment.ts";

/** Statuses that refuse the request as malformed or not allowed, not for a missing token or an unknown path. */
const REFUSALS = new Set([400, 405, 408, 411, 413, 414, 417, 421, 426, 431, 501, 505]);
const REFUSED_OR_UNAUTHORIZED = new Set([...REFUSALS, 401, 403]);
/** Not found; the response may come from the deployment or the backend. */
const NOT_FOUND = 404;
/** Redirects, with which some proxies send a caller without a token to a login. */
const TO_LOGIN = new Set([302, 303, 307]);

/** Returns whether the status refuses the request itself. */
export function isRefusal(status: number): boolean {
  return REFUSALS.has(status);
}

export const pass = (seen: string): Judgement => ({ verdict: "PASS", seen });
export const fail = (seen: string): Judgement => ({ verdict: "FAIL", seen });
export const skip = (seen: string): Judgement => ({ verdict: "SKIP", seen });

/** Why checks of what reaches the backend are skipped. */
const UNSEEN = "selftest cannot see what reaches the backend";

/**
 * Passes if nothing arrives, the only response is a refusal, and the connection is closed, so that the following
 * request is not served.
 */
export const refused: Expectation = {
  close: true,
  judge(observed) {
    const turned = judgeAbsence(observed, REFUSALS);
    if (turned.verdict !== "PASS") return turned;
    if (observed.answers.length > 1)
      return fail(`${responseWords(observed)}: the following request was served`);
    if (observed.end === "open")
      return fail(`${responseWords(observed)}, but the connection stayed open`);
    return pass(`${turned.seen}, closed`);
  },
};

/** The same over HTTP/2, where the stream may be reset and the connection stays open. */
export const refusedStream: Expectation = {
  close: false,
  judge: (observed) => judgeAbsence(observed, REFUSALS),
};

/** Passes if nothing arrives, and the response refuses the request or the caller. */
export const refusedOrUnauthorized: Expectation = {
  close: false,
  judge: (observed) => judgeAbsence(observed, REFUSED_OR_UNAUTHORIZED),
};

/** Passes as well if it arrives below the public path, in a spelling that every server reads alike: a proxy has cleaned it. */
export function refusedOrPublic(publicPath: string): Expectation {
  return {
    ...refusedOrUnauthorized,
    judge(observed, mark) {
      const [arrival, ...more] = observed.arrived ?? [];
      const isPublic =
        arrival?.url.startsWith(publicPath) === true &&
        /^[\w/-]*$/.test(arrival.url) &&
        more.length === 0;
      return isPublic
        ? pass(`it arrived as the public ${describeArrival(arrival)}`)
        : refusedOrUnauthorized.judge(observed, mark);
    },
  };
}

/** What other proxies answer when they were told no in a way that they do not know. */
const ERRORS_OF_ASKERS = new Set([500, 502, 503]);

/** Passes as well if nothing arrives and each answer is an error of the proxy that asks. */
export function alsoRefusedBy5xx(expectation: Expectation): Expectation {
  return {
    ...expectation,
    judge(observed, mark) {
      const judgement = expectation.judge(observed, mark);
      const { answers, arrived } = observed;
      const refused =
        answers.length > 0 &&
        arrived?.length === 0 &&
        answers.every(({ status }) => ERRORS_OF_ASKERS.has(status));
      return judgement.verdict === "FAIL" && refused ? pass(responseWords(observed)) : judgement;
    },
  };
}

function judgeAbsence(observed: Observed, statuses: ReadonlySet<number>): Judgement {
  const [reached] = observed.arrived ?? [];
  if (reached !== undefined) return fail(`it reached the backend as ${describeArrival(reached)}`);
  const [first] = observed.answers;
  if (first === undefined) return judgeSilence(observed);
  if (statuses.has(first.status)) return pass(responseWords(observed));
  if (first.status === NOT_FOUND && statuses === REFUSED_OR_UNAUTHORIZED) {
    return observed.arrived === undefined
      ? skip(`404, which may be the backend's; ${UNSEEN}`)
      : pass(responseWords(observed));
  }
  if (TO_LOGIN.has(first.status) && statuses === REFUSED_OR_UNAUTHORIZED && observed.arrived) {
    return pass(responseWords(observed));
  }
  return fail(responseWords(observed));
}

/** A connection or a stream that ends without a response counts as a refusal. */
function judgeSilence({ end, reset = false }: Observed): Judgement {
  if (reset) return pass("the stream was reset");
  return end === "closed" ? pass("no answer, closed") : fail("no answer in time");
}

/**
 * Passes if the request arrives once with its method and body, or is refused. Besides it, only the following request
 * may arrive.
 */
export function intact(method: string, body: (mark: string) => string): Expectation {
  return {
    close: false,
    judge(observed, mark) {
      if (observed.arrived === undefined) return skip(UNSEEN);
      const strange = observed.arrived.find(
        ({ url }) => !url.includes(`${mark}/attack`) && !url.includes(`${mark}/following`),
      );
      if (strange !== undefined)
        return fail(`the backend executed the body as ${describeArrival(strange)}`);
      return judgeArrival(observed, (arrival) => {
        if (arrival.method !== method) return fail(`it arrived as ${describeArrival(arrival)}`);
        const sent = body(mark);
        const { body: got = sent } = arrival;
        return got === sent
          ? pass(`arrived once, with ${sent.length} bytes of body`)
          : fail(`it arrived with another body: ${got.length} bytes, sent ${sent.length}`);
      });
    },
  };
}

/** Returns a text that every forged value contains. */
export const forgery = (mark: string): string => `forged-${mark}`;
/** An address from a network for documentation (RFC 5737), which no client of a deployment has. */
export const FORGED_ADDRESS = "203.0.113.7";

/** Maximum number of names listed one by one. */
const MAX_LISTED = 5;

/** Passes if the request arrives without the forged values, or is refused. */
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
      const more = names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : "";
      return fail(`the backend got ${names.slice(0, MAX_LISTED).join(", ")}${more}`);
    });
  },
};

/**
 * Passes if the request arrives once and `judge` passes it, or if it is refused. Some request of the attempt must
 * arrive.
 */
export function arrives(judge: (arrival: Arrival, mark: string) => Judgement): Expectation {
  return {
    close: false,
    judge(observed, mark) {
      if (observed.arrived === undefined) return skip(UNSEEN);
      return observed.arrived.length === 0
        ? fail(`${responseWords(observed)}, and it did not arrive`)
        : judgeArrival(observed, (arrival) => judge(arrival, mark));
    },
  };
}

/** Passes if the request arrives without the caller's token. */
export function withoutToken({ token }: Pick<Target, "token">): Expectation {
  return arrives(({ fields }) => {
    const names = fields.filter(([, value]) => value.includes(token)).map(([name]) => name);
    return names.length === 0
      ? pass("arrived without the token")
      : fail(
          `the backend got the token in ${names.join(", ")}; is that meant, as by forwardAuthorization: keep?`,
        );
  });
}

/** Passes if all three cookies arrive. */
export const allCookies: Expectation = arrives(({ fields }, mark) => {
  const values = fields
    .filter(([name]) => name.toLowerCase() === "cookie")
    .map(([, value]) => value);
  const pairs = values.join(";").split(/[;,] */);
  return pairs.join(";") === `a=${mark};b=1;c=${mark}`
    ? pass("arrived whole")
    : fail(`the backend got ${pairs.length} of 3 cookies`);
});

/** Judges the only arrival of the attack; if it did not arrive, the deployment must have refused it. */
function judgeArrival(observed: Observed, judge: (arrival: Arrival) => Judgement): Judgement {
  const attacks = (observed.arrived ?? []).filter(({ url }) => !url.endsWith("/following"));
  const [first, ...more] = attacks;
  if (more.length > 0) return fail(`it arrived ${attacks.length} times`);
  if (first !== undefined) return judge(first);
  if (observed.reset === true) return pass("the stream was reset, nothing arrived");
  const { status = 0 } = observed.answers[0] ?? {};
  if (isRefusal(status)) return pass(`${status}, nothing arrived`);
  return fail(`${responseWords(observed)}, and it did not arrive`);
}

function responseWords({ answers }: Observed): string {
  return answers.length === 0 ? "no answer" : answers.map(({ status }) => status).join(", ");
}

/** Returns the method and the path, quoted and shortened, since a backend may report anything. */
export function describeArrival({ method, url }: Arrival): string {
  const text = JSON.stringify(url);
  return `${method} ${text.length > 100 ? `${text.slice(0, 100)}…` : text}`;
}
