import type { AdminResponse, AdminPage } from "../../core/admin-page.ts";
import type { DryRunRequest, Explanation } from "../../core/explanation.ts";
import { createDryRunRequest, ExplainQueryError } from "./explain-query.ts";

const EXPLAIN_PATH = "/-/explain";
/** Fields that must not be in a query, which ends up in logs and histories. */
const NOT_IN_A_QUERY = /^\s*(?:(?:proxy-)?authorization|cookie)\s*:/i;
const LOOPBACK = "127.0.0.1";

/**
 * `GET /-/explain?method=&url=&header=Name: value&client=address`: the explanation as JSON. The token is taken from
 * the `Authorization` field of the request itself.
 */
export function explainPage(explain: (request: DryRunRequest) => Promise<Explanation>): AdminPage {
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
        const request = createDryRunRequest({
          method: query.get("method") ?? "GET",
          url: query.get("url") ?? "",
          headers: fields,
          authorization: headers.authorization,
          peer: query.get("client") ?? LOOPBACK,
        });
        const explanation = await explain(request);
        return {
          status: 200,
          json: { message: "The request was explained, not sent", success: true, ...explanation },
        };
      } catch (error) {
        if (error instanceof ExplainQueryError) return refusal(error.message);
        throw error;
      }
    },
  };
}

function refusal(message: string): AdminResponse {
  return { status: 400, json: { message, success: false } };
}
