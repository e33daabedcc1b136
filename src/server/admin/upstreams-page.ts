import type { AdminPage } from "../../core/admin-page.ts";
import type { TargetState } from "../../core/request/forwarder.ts";

/** `GET /-/upstreams`: the state of each target, and why it is left out if it is. */
export function upstreamsPage(targets: () => Promise<readonly TargetState[]>): AdminPage {
  return {
    path: "/-/upstreams",
    method: "GET",
    audience: "allowed",
    answer: async () => ({
      status: 200,
      json: { message: "The targets of the upstreams", success: true, targets: await targets() },
    }),
  };
}
