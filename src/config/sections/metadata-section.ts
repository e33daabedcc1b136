import { z } from "zod";
import { canonicalPath } from "../../lib/http/path/canonical-path.ts";
import { isSafeRemoteUrl } from "../../lib/http/remote-request.ts";
import { mapping, optional, remoteUrl, text } from "../fields.ts";

/**
 * Whether clients and we derive the same address of the metadata from it (RFC 9728 §3.1), which stands between quotes in
 * challenges, and a request for that address is served.
 */
function isResource(url: string): boolean {
  // Refused already.
  if (url.includes("#") || !isSafeRemoteUrl(url)) return true;
  const { origin, pathname } = new URL(url);
  const isPlain = !url.includes('"') && [origin, origin + pathname].includes(url);
  return isPlain && canonicalPath(pathname)?.matchPath === pathname;
}

/** The section `metadata`: what programs read to get a token for this resource (RFC 9728). */
export function metadataSection() {
  return mapping(
    "Serves /.well-known/oauth-protected-resource, and names it in challenges (RFC 9728)",
    {
      resource: optional(
        "Audience of tokens for this resource: its URL as clients write it; default: the origin that was asked for",
        remoteUrl().refine(
          isResource,
          "must be written as browsers write it, without a query or quotes, and with a path that a request may have",
        ),
      ),
      name: optional("Name for people", text()),
      documentation: optional("URL of a page for developers", z.url()),
    },
  );
}
