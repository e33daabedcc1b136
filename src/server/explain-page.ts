import { type AdminAnswer, type AdminPage, JSON_TYPE } from "../core/admin-page.ts";
import type { AskedRequest, Explanation } from "../core/explanation.ts";
import { askedRequest, QuestionError } from "./asked-request.ts";

const EXPLAIN_PATH = "/-/explain";
/** A query stands in logs and histories. */
const NOT_IN_A_QUERY = /^\s*(?:(?:proxy-)?authorization|cookie)\s*:/i;
const LOOPBACK = "127.0.0.1";

/**
 * `GET /-/explain?method=&url=&header=Name: value&client=address`: the explanation as JSON. The token is that of the
 * request to this page, in its `Authorization`.
 */
export function explainPage(explain: (asked: AskedRequest) => Promise<Explanation>): AdminPage {
  return {
    path: EXPLAIN_PATH,
    method: "GET",
    audience: "allowed",
    async answer({ query, headers }) {
      const fields = query.getAll("header");
      if (fields.some((line) => NOT_IN_A_QUERY.test(line))) {
        return refusal("a credential has no place in a query: send it as Authorization");
      }
      try {
        const asked = askedRequest({
          method: query.get("method") ?? "GET",
          url: query.get("url") ?? "",
          headers: fields,
          authorization: headers.authorization,
          peer: query.get("client") ?? LOOPBACK,
        });
        return json(200, { success: true, ...(await explain(asked)) });
      } catch (error) {
        if (error instanceof QuestionError) return refusal(error.message);
        throw error;
      }
    },
  };
}

function refusal(message: string): AdminAnswer {
  return json(400, { success: false, message });
}

function json(status: number, value: object): AdminAnswer {
  return { status, type: JSON_TYPE, body: `${JSON.stringify(value, undefined, 2)}\n` };
}
