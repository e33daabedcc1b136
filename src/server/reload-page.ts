import { type AdminPage, JSON_TYPE } from "../core/admin-page.ts";
import { describeProblem } from "../core/config-problem.ts";
import type { ReloadResult } from "../core/reload-result.ts";

/** `POST /-/reload`: reads the configuration now and tells what changed, or what is wrong with it. */
export function reloadPage(reload: () => Promise<ReloadResult>): AdminPage {
  return {
    path: "/-/reload",
    method: "POST",
    audience: "allowed",
    async answer() {
      const result = await reload();
      const said = result.successful
        ? {
            success: true,
            changed: result.changed,
            files: result.files,
            needRestart: result.atRestart,
          }
        : { success: false, problems: result.problems.map(describeProblem) };
      const status = result.successful ? 200 : 422;
      return { status, type: JSON_TYPE, body: `${JSON.stringify(said)}\n` };
    },
  };
}
