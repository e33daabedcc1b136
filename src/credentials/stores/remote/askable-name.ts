const LONGEST_BYTES = 1024;
const CONTROL = /\p{Cc}/u;

/**
 * Whether a name is one that a user of a store elsewhere can have. Others are not asked for: control characters and halves of
 * characters are errors to some servers, and read as something else by others.
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
