import type { Endpoint } from "../../core/request/endpoint.ts";
import type { VersionSource } from "../../core/version-source.ts";
import { envelopeAnswer } from "../request/write-answer.ts";

/** The published interface specifies the first and uses the second in its example. */
export const VERSION_PATHS = ["/api/v1/version", "/api/version"];

/** `GET /api/v1/version`: the version of the API behind the sidecar, for callers with a valid token. */
export function versionEndpoint(source: VersionSource): Endpoint {
  return {
    name: "version",
    methods: ["GET", "HEAD"],
    auth: "required",
    async answer({ request }) {
      const version = await source.current();
      const envelope = { id: request.id, message: "Version of the API", success: true, version };
      return envelopeAnswer(200, envelope, request);
    },
  };
}
