import type { AdminPage, AdminResponse } from "../../core/admin-page.ts";
import { describeProblem } from "../../core/config-problem.ts";
import type { ReloadResult } from "../../core/reload-result.ts";
import type { TargetState } from "../../core/request/forwarder.ts";
import type { StatusConfiguration } from "../../core/status.ts";
import { failure, restrictedPage, success } from "./page-parts.ts";

/** Pages that show the state of the process, or change it. */

/**
 * `GET /-/config`: the running configuration, in the form in which `sallyport config` shows the one on disk. Masks
 * secrets.
 */
export function configPage(view: () => StatusConfiguration): AdminPage {
  return restrictedPage("GET", "/-/config", () =>
    success("The configuration that is in force", view()),
  );
}

/** `GET /-/upstreams`: the state of each target, and why it is left out if it is. */
export function upstreamsPage(targets: () => Promise<readonly TargetState[]>): AdminPage {
  return restrictedPage("GET", "/-/upstreams", async () =>
    success("The targets of the upstreams", { targets: await targets() }),
  );
}

/** `POST /-/reload`: reloads the configuration and reports what changed, or what is wrong with it. */
export function reloadPage(reload: (by: string) => Promise<ReloadResult>): AdminPage {
  return restrictedPage("POST", "/-/reload", async ({ peer }) => {
    const result = await reload(peer);
    if (!result.successful) {
      const message = "The configuration was not reloaded: the one before stays in force";
      return failure(422, message, { problems: result.problems.map(describeProblem) });
    }
    const { changed, files, atRestart: needRestart } = result;
    return success("The configuration was reloaded", { changed, files, needRestart });
  });
}

/** The progress of a drain: `drained` when no request is running any more. */
export type DrainState = "serving" | "draining" | "drained";

const DRAIN_MESSAGES: Readonly<Record<DrainState, string>> = {
  serving: "Requests are served",
  draining: "The traffic is being drained",
  drained: "The traffic is drained",
};

export interface DrainControl {
  readonly state: () => DrainState;
  /** Starts draining, unless it has already started. @param by the address of the peer. */
  readonly begin: (by: string) => void;
}

/** `/-/drain`: POST starts draining, GET shows the progress. Both respond at once, so that no client times out. */
export function drainPages({ state, begin }: DrainControl): AdminPage[] {
  const progress = (status: number): AdminResponse =>
    success(DRAIN_MESSAGES[state()], { state: state() }, status);
  return [
    restrictedPage("GET", "/-/drain", () => progress(200)),
    restrictedPage("POST", "/-/drain", ({ peer }) => {
      begin(peer);
      return progress(202);
    }),
  ];
}
