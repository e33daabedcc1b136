/**
 * Creates a generator of response ids that are unique in the pod. Ids start from the wall clock, so that a restarted
 * process continues above its predecessor. They advance by `stride`, so that threads with different offsets below
 * `stride` never collide. There is room for 2,048 ids per millisecond of uptime. Ids are safe integers until 2109.
 */
export function createResponseIds(startMs: number, offset = 0, stride = 1): () => number {
  let next = Math.floor((startMs * 2048) / stride) * stride + offset;
  return () => {
    const id = next;
    next += stride;
    return id;
  };
}
