/**
 * Numbers that no other answer of the pod has: they start from the wall clock, so that a restarted process goes on above
 * its predecessor, and advance in steps of `stride`, so that several threads, each with an `offset`
 * of its own below `stride`, never meet, whenever each of them began.
 * Two thousand a millisecond of uptime can be drawn before the predecessor's could be met; safe integers until 2109.
 */
export function responseIds(startMs: number, offset = 0, stride = 1): () => number {
  let next = Math.floor((startMs * 2048) / stride) * stride + offset;
  return () => {
    const id = next;
    next += stride;
    return id;
  };
}
