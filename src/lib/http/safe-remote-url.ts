const LOOPBACK = /^(?:127(?:\.\d+){3}|\[::1\]|localhost)$/;

/**
 * Whether what an address answers can be believed: https, or http from the loopback alone. Never with credentials, which
 * would reach logs, nor with a fragment, which is never sent.
 */
export function isSafeRemoteUrl(value: string): boolean {
  if (!URL.canParse(value) || value.includes("#")) return false;
  const { protocol, hostname, username, password } = new URL(value);
  const safe = protocol === "https:" || (protocol === "http:" && isLoopback(hostname));
  return safe && username === "" && password === "";
}

/** Whether a host name of a URL is this machine's own. */
export function isLoopback(hostname: string): boolean {
  return LOOPBACK.test(hostname);
}

/** What an address has to be that is refused. */
export const SAFE_REMOTE_URL =
  "must be an https URL without credentials (http is for loopback alone)";
