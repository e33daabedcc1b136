/** One user as a store knows it. */
export interface UserRecord {
  readonly name: string;
  /** PHC, bcrypt or scrypt string. */
  readonly password: string;
  readonly groups: readonly string[];
  readonly disabled: boolean;
}

/** A place where users are kept. An unknown name is the ordinary result `undefined`; a store that cannot be read throws. */
export interface UserStore {
  find(username: string): UserRecord | undefined;
  /** The password hashes of all users: what an unknown name's login must cost is taken from them. */
  passwords(): readonly string[];
}
