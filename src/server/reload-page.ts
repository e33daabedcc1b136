import { type AdminPage, JSON_TYPE } from "../core/admin-page.ts";
import { type ConfigProblem, describeProblem } from "../core/config-problem.ts";

type Result =
  | {
      readonly successful: true;
      readonly changed: readonly string[];
      readonly files: readonly string[];
      readonly atRestart: readonly string[];
    }
  | { readonly successful: false; readonly problems: readonly ConfigProblem[] };

/** `POST /-/reload`: reads the configuration now and tells what changed, or what is wrong with it. */
export function reloadPage(reload: () => Promise<Result>): AdminPage {
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
