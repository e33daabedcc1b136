/**
 * Reports an error that nobody can handle here, without interrupting the caller: Node treats it as uncaught, which is
 * logged (`surviveErrors`).
 */
export function reportUncaught(error: unknown): void {
  setImmediate(() => {
    throw error;
  });
}

/** Calls each of several members that belong to different owners. One that throws does not keep the others from their call. */
export function callEach<Member>(members: Iterable<Member>, call: (member: Member) => void): void {
  for (const member of members) {
    try {
      call(member);
    } catch (error) {
      reportUncaught(error);
    }
  }
}
