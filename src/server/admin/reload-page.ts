import type { AdminPage } from "../../core/admin-page.ts";
import { describeProblem } from "../../core/config-problem.ts";
import type { ReloadResult } from "../../core/reload-result.ts";

/** `POST /-/reload`: reloads the configuration and reports what changed, or what is wrong with it. */
export function reloadPage(reload: () => Promise<ReloadResult>): AdminPage {
  return {
    path: "/-/reload",
    method: "POST",
    audience: "allowed",
    async answer() {
      const result = await reload();
      const json = result.successful
        ? {
            message: "The configuration was reloaded",
            success: true,
            changed: result.changed,
            files: result.files,
            needRestart: result.atRestart,
          }
        : {
            message: "The configuration was not reloaded: the one before stays in force",
            success: false,
            problems: result.problems.map(describeProblem),
          };
      return { status: result.successful ? 200 : 422, json };
    },
  };
}
