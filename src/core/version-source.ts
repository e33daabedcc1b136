/** The version of the API behind the sidecar. */
export interface VersionSource {
  /** @returns `<major>.<minor>.<patch>`. @throws GateError `version_unavailable` if it is unknown. */
  current(): Promise<string>;
}

/** The form of a version in the public interface. */
export const VERSION_FORM = /^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)$/;
