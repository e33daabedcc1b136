const LOOPBACK = /^(?:127(?:\.\d+){3}|\[::1\]|localhost)$/;

/**
 * Whether responses from this URL can be trusted: it must use https, or http on the loopback interface. Refuses
 * credentials, which would reach logs, and a fragment, which is never sent.
 */
export function isSafeRemoteUrl(value: string): boolean {
  if (!URL.canParse(value) || value.includes("#")) return false;
  const { protocol, hostname, username, password } = new URL(value);
  const safe = protocol === "https:" || (protocol === "http:" && isLoopback(hostname));
  return safe && username === "" && password === "";
}

/** Whether the host of a URL is the loopback interface. */
function isLoopback(hostname: string): boolean {
  return LOOPBACK.test(hostname);
}

/** The message for a refused URL. */
export const SAFE_REMOTE_URL =
  "must be an https URL without credentials (http is for loopback alone)";
