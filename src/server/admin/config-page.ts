import type { AdminPage } from "../../core/admin-page.ts";

/** The fields of `/-/config` in addition to the envelope. */
interface ConfigView {
  readonly hash: string;
  /** Changed keys that take effect after a restart. */
  readonly needRestart: readonly string[];
  readonly values: readonly object[];
}

/**
 * `GET /-/config`: the running configuration, in the form in which `sallyport config` shows the one on disk. Masks
 * secrets.
 */
export function configPage(view: () => ConfigView): AdminPage {
  return {
    path: "/-/config",
    method: "GET",
    audience: "allowed",
    answer: () => ({
      status: 200,
      json: { message: "The configuration that is in force", success: true, ...view() },
    }),
  };
}
