const LONGEST_BYTES = 1024;
const CONTROL = /\p{Cc}/u;

/**
 * Reports whether a user of a remote store can have this name. Stores are not asked about other names: some servers
 * reject control characters and lone surrogates, and others misread them.
 */
export function isAskable(username: string): boolean {
  return (
    username !== "" &&
    username.length <= LONGEST_BYTES &&
    Buffer.byteLength(username) <= LONGEST_BYTES &&
    username.isWellFormed() &&
    !CONTROL.test(username)
  );
}
