/** What a hashing thread is asked, and what it answers. */
export interface HashingJob {
  readonly password: string;
  readonly hash: string;
}

export type HashingAnswer = { readonly matches: boolean } | { readonly failed: string };
