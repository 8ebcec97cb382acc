(** * Lemma 4: the induction step

    BF-IO (arXiv 2601.17855), Lemma 4, bounds the average gap by [s_max / p]. The factor [1 / p] is an artefact: on a
    good step the excess of the gap over [s] shrinks by the factor [1 - p], and nothing is added. A step is good if

    - the free slots are nearly equal: [r <= s * min c - (s - 1) * max c] (in the paper [r = eta p B], on its event
      E_k);
    - the spread before admission has concentrated: [D_pre <= (1 - p) D_before + t] (its Lemma 3);
    - [r - t >= (1 - p) s].

    The probability is written [1 - p = u / v]; all numbers are then whole. The subtraction stops at 0. *)
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify.
From LB Require Import Model Extremes Lemma1 Lemma2.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Lemma good_step (u v s r t before pre after : nat) :
  v * pre <= u * before + v * t -> v * t + u * s <= v * r -> after <= s + (pre - r) ->
  v * (after - s) <= u * (before - s).
Proof.
move=> Hpre Hr Hafter; apply: leq_trans (_ : v * (pre - r) <= _); first by rewrite leq_mul2l; apply/orP; right; lia.
by rewrite !mulnBr; lia.
Qed.

Section Step.
Variables (W R : finType) (p : problem W R) (s u v r t before : nat).
Hypotheses (W0 : 0 < #|W|) (s2 : 2 <= s) (free : forall i, ~~ must p i) (over : overloaded p).
Hypothesis sizes : forall i, 1 <= size p i <= s.
Hypothesis slots_nearly_equal : r + (s - 1) * largest (slots p) <= s * smallest (slots p).
Hypothesis concentrated : v * gap (base p) <= u * before + v * t.
Hypothesis margin : v * t + u * s <= v * r.

(** (D(k) - s)^+ <= (1 - p) (D(k-1) - s)^+ *)
Theorem lemma4_step (a : assignment W R) : leximax p a -> v * (gap (load p a) - s) <= u * (before - s).
Proof.
move=> Hl; apply: good_step concentrated margin _.
apply: leq_trans (gap_leximax W0 s2 free over sizes Hl) _; rewrite /whole_gap_bound; lia.
Qed.
End Step.

(** Good steps in a row: the excess decays geometrically; a gap of at most [s] stays so. *)
Theorem lemma4_good_steps (u v s : nat) (D : nat -> nat) (n : nat) :
  (forall k, k < n -> v * (D k.+1 - s) <= u * (D k - s)) -> v ^ n * (D n - s) <= u ^ n * (D 0 - s).
Proof.
elim: n => [|n IH] H; first by rewrite !expn0.
rewrite !expnS -mulnA mulnCA; apply: leq_trans (_ : v ^ n * (u * (D n - s)) <= _).
  by rewrite leq_mul2l H ?orbT.
rewrite mulnCA -mulnA leq_mul2l IH ?orbT // => k kn; apply: H; exact: ltnW.
Qed.

(** With an error [e] in every step the excess stays within [e / (1 - u / v)] of what has decayed:
    [(v - u) E_n <= e + (v - u) (u / v)^n E_0], multiplied out. *)
Theorem lemma4_with_errors (u v e : nat) (E : nat -> nat) (n : nat) : u <= v ->
  (forall k, k < n -> v * E k.+1 <= u * E k + e) ->
  v ^ n * ((v - u) * E n) <= v ^ n * e + u ^ n * ((v - u) * E 0).
Proof.
move=> uv; elim: n => [|n IH] H; first by rewrite !expn0 !mul1n leq_addl.
have {IH} : v ^ n * ((v - u) * E n) <= v ^ n * e + u ^ n * ((v - u) * E 0) by apply: IH => k kn; apply: H; apply: ltnW.
have {H} := H n (ltnSn n); rewrite !expnS => Hn IH.
apply: leq_trans (_ : v ^ n * ((v - u) * (u * E n + e)) <= _).
  rewrite -mulnA mulnCA leq_mul2l; apply/orP; right.
  by rewrite mulnCA leq_mul2l Hn orbT.
rewrite !mulnDr; apply: leq_trans (_ : u * (v ^ n * e + u ^ n * ((v - u) * E 0)) + v ^ n * ((v - u) * e) <= _).
  rewrite leq_add2r; apply: leq_trans (_ : u * (v ^ n * ((v - u) * E n)) <= _); last by rewrite leq_mul2l IH orbT.
  by apply/eq_leq; rewrite [(v - u) * (u * _)]mulnCA [v ^ n * (u * _)]mulnCA.
rewrite mulnDr -addnA addnC -addnA; apply/eq_leq.
have -> : v = u + (v - u) by rewrite subnKC.
set w := v - u; rewrite addKn; lia.
Qed.

(** ** The average over a horizon

    Errors may differ from step to step. Summed up, [v E(k+1) <= u E(k) + e(k)] telescopes:
    [(1 - p) = u / v], so that [p * (sum of E) <= (1 - p) E(0) + (sum of e) / v]. *)
Theorem lemma4_average (u v : nat) (e E : nat -> nat) (n : nat) :
  (forall k, k < n -> v * E k.+1 <= u * E k + e k) ->
  (v - u) * (\sum_(k < n) E k.+1) <= u * E 0 + \sum_(k < n) e k.
Proof.
move=> H.
have Hsum : v * (\sum_(k < n) E k.+1) <= u * (\sum_(k < n) E k) + \sum_(k < n) e k.
  by rewrite !big_distrr -big_split /=; apply: leq_sum => k _; apply: H.
have Htel : (\sum_(k < n) E k) <= E 0 + \sum_(k < n) E k.+1.
  case: (n) => [|m]; first by rewrite !big_ord0.
  by rewrite big_ord_recl leq_add2l /= [X in _ <= X]big_ord_recr leq_addr.
rewrite mulnBl leq_subLR; apply: leq_trans Hsum _.
rewrite addnA leq_add2r -mulnDr leq_mul2l; apply/orP; right.
by rewrite addnC.
Qed.

(** A run of steps, each at a placement that has the bound of Lemma 2: a leximax optimum with an overloaded pool
    ([run_leximax]), or any optimum with two plentiful sizes ([run_plentiful]). A step may be good or not. One that is
    not adds its own excess. What is left for probability is how often steps are not good, and how wide. *)
Section Run.
Variables (W : finType) (R : nat -> finType).
Variables (p : forall k, problem W (R k)) (a : forall k, assignment W (R k)) (s u v r t : nat).
Hypotheses (W0 : 0 < #|W|) (s2 : 2 <= s) (margin : v * t + u * s <= v * r).

Definition gap_after (k : nat) : nat := gap (load (p k) (a k)).
Definition excess (k : nat) : nat := gap_after k - s.

(** The free slots of step [k] are nearly equal, and the spread before admission has concentrated. *)
Definition good (k : nat) : bool :=
  (r + (s - 1) * largest (slots (p k)) <= s * smallest (slots (p k))) &&
  (v * gap (base (p k)) <= u * gap_after k.-1 + v * t).

Definition bounded : Prop := forall k, gap_after k <= whole_gap_bound (p k) s.

Theorem lemma4_run n : bounded ->
  (v - u) * (\sum_(k < n) excess k.+1) <= u * excess 0 + \sum_(k < n | ~~ good k.+1) v * excess k.+1.
Proof.
move=> Hb; rewrite [X in _ + X]big_mkcond /=.
apply: (lemma4_average (e := fun k => if ~~ good k.+1 then v * excess k.+1 else 0)) => k _.
case: (boolP (good k.+1)) => /= [/andP[H1 H2]|_]; last exact: leq_addl.
rewrite addn0; apply: good_step H2 margin _.
apply: leq_trans (Hb k.+1) _; move: H1; rewrite /whole_gap_bound; lia.
Qed.

(** The imbalance, as Theorem 2 needs it: at most [G - 1] times the gap. *)
Corollary lemma4_imbalance n : bounded ->
  (v - u) * (\sum_(k < n) cost (p k.+1) (a k.+1))
    <= (#|W| - 1) * ((v - u) * (n * s) + u * excess 0 + \sum_(k < n | ~~ good k.+1) v * excess k.+1).
Proof.
move=> Hb; have Hk k : cost (p k) (a k) <= (#|W| - 1) * (s + excess k).
  apply: leq_trans (imbalance_le_gap _ W0) _; rewrite leq_mul2l; apply/orP; right.
  by rewrite /excess /gap_after; lia.
apply: leq_trans (_ : (v - u) * (\sum_(k < n) (#|W| - 1) * (s + excess k.+1)) <= _).
  by rewrite leq_mul2l; apply/orP; right; apply: leq_sum => k _.
rewrite -big_distrr /= big_split /= sum_nat_const card_ord mulnCA leq_mul2l; apply/orP; right.
by rewrite mulnDr -addnA leq_add2l lemma4_run.
Qed.

(** ** The two hypotheses of Theorem 2 *)
Hypotheses (free : forall k i, ~~ must (p k) i) (sizes : forall k i, 1 <= size (p k) i <= s).

Corollary run_leximax : (forall k, overloaded (p k)) -> (forall k, leximax (p k) (a k)) -> bounded.
Proof. by move=> over lex k; apply: gap_leximax => //; apply: (@sizes k) || apply: (@free k). Qed.

Corollary run_plentiful : (forall k, plentiful (p k) s) -> (forall k, exists2 x, x != s & plentiful (p k) x) ->
  (forall k, optimal (p k) (a k)) -> bounded.
Proof.
move=> Hs Hx Ho k; have [x xs Px] := Hx k.
exact: (gap_two_plentiful W0 (@free k) (@sizes k) s2 xs (Hs k) Px (Ho k)).
Qed.
End Run.
