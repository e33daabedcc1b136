const LONGEST_BYTES = 1024;
const CONTROL = /\p{Cc}/u;

/**
 * Whether a name is one that a user of a store elsewhere can have. No store is asked about other names: control characters and
 * lone surrogates are errors to some servers, and misread by others.
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
