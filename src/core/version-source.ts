/** Where the version of the API behind the sidecar is known. Throws `GateError("version_unavailable")` when it is not. */
export interface VersionSource {
  /** @returns `<major>.<minor>.<patch>`. */
  current(): Promise<string>;
}

/** The one form that a version has in the published interface. */
export const VERSION_FORM = /^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)$/;
