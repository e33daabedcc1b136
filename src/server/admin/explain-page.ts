import type { AdminPage } from "../../core/admin-page.ts";
import type { DryRunRequest, Explanation } from "../../core/explanation.ts";
import { createDryRunRequest, ExplainQueryError } from "./explain-query.ts";
import { failure, restrictedPage, success } from "./page-parts.ts";

/** Fields that must not be in a query, which ends up in logs and histories. */
const NOT_IN_A_QUERY = /^\s*(?:(?:proxy-)?authorization|cookie)\s*:/i;
const LOOPBACK = "127.0.0.1";

/**
 * `GET /-/explain?method=&url=&header=Name: value&client=address`: the explanation as JSON. The token is taken from
 * the `Authorization` field of the request itself.
 */
export function explainPage(explain: (request: DryRunRequest) => Promise<Explanation>): AdminPage {
  return restrictedPage("GET", "/-/explain", async ({ query, headers }) => {
    const fields = query.getAll("header");
    if (fields.some((line) => NOT_IN_A_QUERY.test(line))) {
      return failure(400, "a credential has no place in a query: send it as Authorization");
    }
    try {
      const request = createDryRunRequest({
        method: query.get("method") ?? "GET",
        url: query.get("url") ?? "",
        headers: fields,
        authorization: headers.authorization,
        peer: query.get("client") ?? LOOPBACK,
      });
      return success("The request was explained, not sent", await explain(request));
    } catch (error) {
      if (error instanceof ExplainQueryError) return failure(400, error.message);
      throw error;
    }
  });
}
