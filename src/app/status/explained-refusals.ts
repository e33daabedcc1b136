import { setImmediate as turn } from "node:timers/promises";
import { routeRow } from "../../config/effective/route-row.ts";
import type { Configuration } from "../../config/schema/configuration-schema.ts";
import type { DryRunRequest, Explanation } from "../../core/explanation.ts";
import type { RecentRefusal } from "../../core/recent.ts";
import type { RefusalExplanation, StatusRefusal } from "../../core/status.ts";
import { shellWord } from "../../lib/text/shell-word.ts";
import { accessPolicyWords } from "../../policy/access-policy.ts";
import { createDryRunRequest, ExplainQueryError } from "../../server/admin/explain-query.ts";

type Explain = (request: DryRunRequest) => Promise<Explanation>;

/** Maximum number of routes to list before the one that matched. */
const MAX_ROUTES = 12;

/**
 * Explains refusals with dry runs: one for each group of equal requests, and only one per turn of the event loop, so
 * that clients do not have to wait.
 */
export async function explainRefusals(
  refusals: readonly RecentRefusal[],
  configuration: Configuration,
  explain: Explain,
): Promise<StatusRefusal[]> {
  const known = new Map<string, RefusalExplanation | undefined>();
  const explained: StatusRefusal[] = [];
  for (const refusal of refusals) {
    const { method, host, path, client, protocol } = refusal;
    const key = JSON.stringify([method, host, path, client, protocol]);
    if (!known.has(key)) {
      known.set(key, await explanationOf(refusal, configuration, explain));
      await turn();
    }
    explained.push({ ...refusal, explanation: known.get(key) });
  }
  return explained;
}

const UPGRADE = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"];

async function explanationOf(
  refusal: RecentRefusal,
  configuration: Configuration,
  explain: Explain,
): Promise<RefusalExplanation | undefined> {
  const { method, host, path, client, protocol } = refusal;
  if (method === "" || path === "") return undefined;
  const scheme = configuration.server.tls.mode === "off" ? "http" : "https";
  const url = `${scheme}://${host || "localhost"}${path}`;
  const headers = protocol === "websocket" ? UPGRADE : [];
  try {
    const dryRun = createDryRunRequest({
      method,
      url,
      headers,
      authorization: undefined,
      peer: client,
    });
    const { verdict, routes, notes } = await explain(dryRun);
    const route = configuration.routes.find(({ name }) => name === verdict.route);
    return {
      verdict,
      notes,
      routes: routes.filter(({ result }) => result !== "not tried").slice(-MAX_ROUTES),
      access: route && accessPolicyWords(routeRow(route, configuration.server.limits)),
      command: commandOf({ method, url, client, headers }),
    };
  } catch (error) {
    if (error instanceof ExplainQueryError) return undefined;
    throw error;
  }
}

function commandOf(request: {
  readonly method: string;
  readonly url: string;
  readonly client: string;
  readonly headers: readonly string[];
}): string {
  const { method, url, client, headers } = request;
  const options = [
    ...(method === "GET" ? [] : ["--method", method]),
    ...["--url", url, "--client", client],
    ...headers.flatMap((header) => ["--header", header]),
    ...["--token-file", "FILE"],
  ];
  return ["sallyport", "explain", ...options.map(shellWord)].join(" ");
}
