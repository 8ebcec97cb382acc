(** * Requests by size class: how many of each class a worker takes

    The size class [x : 'I_s] holds the requests of [x.+1] units; a unit is [q] tokens, so that loads before the
    decision need not be multiples of a size. [n g x] is the number of requests of class [x] on worker [g]. The moves
    of the proof of Lemma 2 are written here once: a request takes the place of another on its worker, and all workers
    of a set do so at the same time. *)
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify.
From LB Require Import Model Extremes.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Counts.
Variables (W : finType) (s q : nat) (P c : W -> nat) (p : 'I_s -> nat).
Implicit Types (n : W -> 'I_s -> nat) (f : 'I_s -> nat).

(** Units that worker [g] is given, and its load in tokens. *)
Definition volume n g := \sum_(x < s) x.+1 * n g x.
Definition cload n g := P g + q * volume n g.

(** Every slot is filled, and no class gives more requests than wait. *)
Definition cfeasible n := (forall g, \sum_(x < s) n g x = c g) /\ (forall x, \sum_g n g x <= p x).
Definition coptimal n := cfeasible n /\ forall n', cfeasible n' -> imbalance (cload n) <= imbalance (cload n').

(** A request of class [y] takes the place of one of class [b]. *)
Definition rep (b y : 'I_s) f : 'I_s -> nat := fun x => f x + (x == y) - (x == b).

Lemma sum_delta (w : 'I_s -> nat) b : \sum_x w x * (x == b) = w b.
Proof.
rewrite (bigD1 b) //= eqxx muln1 big1 ?addn0 // => i /negbTE ->; by rewrite muln0.
Qed.

Lemma repE b y f x : 0 < f b -> rep b y f x + (x == b) = f x + (x == y).
Proof. rewrite /rep => fb; case: (x =P b) => [->|_] /=; lia. Qed.

Lemma rep_sum (w : 'I_s -> nat) b y f : 0 < f b ->
  \sum_x w x * rep b y f x + w b = \sum_x w x * f x + w y.
Proof.
move=> fb; rewrite -(sum_delta w b) -(sum_delta w y) -!big_split /=.
by apply: eq_bigr => x _; rewrite -!mulnDr repE.
Qed.

Lemma rep_card b y f : 0 < f b -> \sum_x rep b y f x = \sum_x f x.
Proof.
move=> fb; have := rep_sum (fun=> 1) y fb.
under eq_bigr do rewrite mul1n; under [in X in _ = X -> _]eq_bigr do rewrite mul1n. lia.
Qed.

Lemma imbalance_below n K : (forall g, cload n g <= K) -> imbalance (cload n) <= \sum_g (K - cload n g).
Proof.
move=> H; rewrite imbalance_margins; apply: leq_sum => g _; apply: leq_sub2r; exact: largest_le.
Qed.

(** If no margin below some level [K] exceeds the margin before, and one is less, the imbalance falls. *)
Lemma imbalance_falls n n' K : (forall g, cload n' g <= K) ->
  (forall g, K - cload n' g <= largest (cload n) - cload n g) ->
  (exists h, K - cload n' h < largest (cload n) - cload n h) -> imbalance (cload n') < imbalance (cload n).
Proof.
move=> HK Hle [h Hh]; apply: leq_ltn_trans (imbalance_below HK) _.
rewrite imbalance_margins (bigD1 h) //= [X in _ < X](bigD1 h) //=.
rewrite -addSn; apply: leq_add => //; by apply: leq_sum.
Qed.

(** In every worker of [A] a request of class [y] takes the place of one of class [b]. *)
Definition drop (A : {set W}) (b y : 'I_s) n : W -> 'I_s -> nat :=
  fun g => if g \in A then rep b y (n g) else n g.

Lemma drop_load (A : {set W}) (b y : 'I_s) n g : (forall g, g \in A -> 0 < n g b) ->
  cload (drop A b y n) g + (g \in A) * (q * b) = cload n g + (g \in A) * (q * y).
Proof.
move=> HA; rewrite /cload /volume /drop; case: (boolP (g \in A)) => [gA|_] /=; last lia.
have /= := rep_sum (fun x : 'I_s => x.+1) y (HA _ gA); nia.
Qed.

Lemma drop_feasible (A : {set W}) (b y : 'I_s) n : cfeasible n -> (forall g, g \in A -> 0 < n g b) ->
  \sum_g n g y + #|A| <= p y -> cfeasible (drop A b y n).
Proof.
move=> [H1 H2] HA Hy; split=> [g|x].
  rewrite -H1 /drop; case: ifP => // gA; apply: rep_card; exact: HA.
case: (x =P y) => [->|/eqP xy].
  apply: leq_trans Hy; rewrite -sum1_card [X in _ <= _ + X]big_mkcond -big_split /=.
  apply: leq_sum => g _; rewrite /drop; case: ifP => gA; rewrite ?addn0 // /rep; lia.
apply: leq_trans (H2 x); apply: leq_sum => g _; rewrite /drop; case: ifP => // gA.
rewrite /rep (negbTE xy); lia.
Qed.

(** The replacement of Cases I and II: if all workers within less than [d] units of the maximum hold a request of class
    [b], some worker is further away, and enough requests of class [b - d] wait, then the imbalance was not least. *)
Lemma drop_improves (A : {set W}) (b y : 'I_s) d h n : 0 < q -> coptimal n -> 0 < d -> y + d = b ->
  (forall g, g \in A -> 0 < n g b) -> \sum_g n g y + #|A| <= p y ->
  (forall g, (g \in A) = (largest (cload n) - cload n g < q * d)) -> h \notin A -> False.
Proof.
move=> q0 [Hf Ho] d0 yd HA Hy AE hA.
have Hf' := drop_feasible Hf HA Hy.
have qb : q * b = q * y + q * d by rewrite -mulnDr yd.
have qd : 0 < q * d by rewrite muln_gt0 q0.
suff: imbalance (cload (drop A b y n)) < imbalance (cload n) by have := Ho _ Hf'; lia.
have E g := drop_load y g HA.
have h1 := AE h; rewrite (negbTE hA) in h1.
apply: (@imbalance_falls n _ (largest (cload n) - q * d)) => [g|g|].
- have := E g; have := AE g; have := le_largest (cload n) g; case: (g \in A) => /=; rewrite ?mul1n ?mul0n; lia.
- have := E g; have := AE g; have := le_largest (cload n) g; case: (g \in A) => /=; rewrite ?mul1n ?mul0n; lia.
exists h; have := E h; rewrite (negbTE hA) /=; have := le_largest (cload n) h; lia.
Qed.

(** An unadmitted request larger than one of a worker that is [s - 1] units below the maximum would take its place. *)
Lemma raise_improves (b x : 'I_s) h n : 0 < q -> coptimal n -> b < x -> 0 < n h b ->
  \sum_g n g x < p x -> cload n h + q * s.-1 <= largest (cload n) -> False.
Proof.
move=> q0 [Hf Ho] bx hb Hx Hl.
have HA g : g \in [set h] -> 0 < n g b by move/set1P => ->.
have Hf' : cfeasible (drop [set h] b x n) by apply: drop_feasible => //; rewrite cards1; lia.
suff: imbalance (cload (drop [set h] b x n)) < imbalance (cload n) by have := Ho _ Hf'; lia.
have E g := drop_load x g HA.
have xs := ltn_ord x.
have qx : q * x <= q * s.-1 by rewrite leq_mul2l; apply/orP; right; lia.
have qbx : q * b < q * x by rewrite ltn_pmul2l.
apply: (@imbalance_falls n _ (largest (cload n))) => [g|g|].
- have := E g; rewrite inE; case: eqP => [->|_] /=; have := le_largest (cload n) g; lia.
- have := E g; rewrite inE; case: eqP => [->|_] /=; lia.
exists h; have := E h; rewrite inE eqxx /=; have := le_largest (cload n) h; lia.
Qed.

(** Volume of a worker that holds nothing above class [b], and of one that holds nothing below it. *)
Lemma volume_le (b : 'I_s) n g : (forall x : 'I_s, b < x -> n g x = 0) ->
  volume n g <= b * (\sum_(x < s) n g x) + n g b.
Proof.
move=> H; rewrite -[X in _ + X](mul1n) -(sum_delta (fun x => 1 * n g x) b) big_distrr /= -big_split /=.
apply: leq_sum => x _; case: (x =P b) => [->|xb] /=; first lia.
case: (ltnP b x) => [/H ->|xb']; first lia.
have : x < b by rewrite ltn_neqAle xb' andbT; apply/eqP => E; apply: xb; apply: val_inj.
nia.
Qed.

Lemma volume_ge (b : 'I_s) n g : (forall x : 'I_s, x < b -> n g x = 0) ->
  b.+1 * (\sum_(x < s) n g x) <= volume n g.
Proof.
move=> H; rewrite big_distrr /=; apply: leq_sum => x _.
case: (ltnP x b) => [/H ->|xb]; nia.
Qed.

(** The least class on a worker; the largest of all classes where it holds nothing. *)
Lemma least_class n h : 0 < s ->
  exists b : 'I_s, (forall x : 'I_s, x < b -> n h x = 0) /\ ((0 < n h b) || (b.+1 == s)).
Proof.
move=> s0; case: (pickP (fun x : 'I_s => 0 < n h x)) => [x0 Hx0|H0].
  case: (@arg_minnP _ x0 (fun x : 'I_s => 0 < n h x) (fun x : 'I_s => val x) Hx0) => b Hb Hmin.
  exists b; split; last by rewrite Hb.
  move=> x xb; apply/eqP; rewrite -leqn0 leqNgt; apply/negP => Hx; have /= := Hmin x Hx; lia.
have sl : s.-1 < s by lia.
exists (Ordinal sl); split=> [x _|]; first by have /= := H0 x; lia.
by apply/orP; right; apply/eqP => /=; lia.
Qed.

End Counts.
