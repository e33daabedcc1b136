import { constants, open } from "node:fs/promises";
import type { Endpoint } from "../request/gate.ts";
import { GateError, type Reason } from "../../core/request/errors.ts";
import type { TokenPlaces } from "../../core/request/token-place.ts";
import { VERSION_FORM, type VersionSource } from "../../core/version-source.ts";
import { successAnswer } from "../request/write-answer.ts";

/** The published interface specifies the first and uses the second in its example. */
const VERSION_PATHS = ["/api/v1/version", "/api/version"];

/** `GET /api/v1/version`: the version of the API behind the sidecar, for callers with a valid token. */
export function versionEndpoint(
  source: VersionSource,
  tokenFrom?: TokenPlaces,
): readonly (readonly [string, Endpoint])[] {
  const endpoint: Endpoint = {
    name: "version",
    methods: ["GET", "HEAD"],
    auth: "required",
    tokenFrom,
    async answer({ request }) {
      const version = await source.current();
      return successAnswer(request, "Version of the API", { version });
    },
  };
  return VERSION_PATHS.map((path) => [path, endpoint]);
}

/** Maximum number of bytes read from the file. */
const MAX_BYTES = 256;
/** Without O_NONBLOCK, opening a pipe waits for a writer. */
const HOW = constants.O_RDONLY | constants.O_NONBLOCK;

/** @param version already validated. */
export function fixedVersion(version: string): VersionSource {
  return { current: async () => version };
}

/** Reads the file for each answer, so that an update of the API is visible at once. */
export function fileVersion(path: string): VersionSource {
  return {
    async current() {
      const text = await firstBytes(path);
      if (!VERSION_FORM.test(text)) throw unavailable("version_malformed", undefined);
      return text;
    },
  };
}

async function firstBytes(path: string): Promise<string> {
  try {
    await using file = await open(path, HOW);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_BYTES), 0, MAX_BYTES, 0);
    return buffer.toString("utf8", 0, bytesRead).trim();
  } catch (error) {
    throw unavailable("version_unreadable", error);
  }
}

function unavailable(reason: Reason, cause: unknown): GateError {
  return new GateError("version_unavailable", { reason, cause });
}
