(** * The bound of Lemma 2 is attained

    With sizes 1 and 2, every fleet whose heaviest worker has the most free slots and whose lightest has the fewest
    attains the bound at *every* feasible assignment: the heaviest worker can get no less, and the lightest no more. So
    for [s = 2] the bound is tight for every number of workers and all such slots. A concrete step follows, for every
    distance [k] between two workers, and one with [s = 3], in which the first term of the bound counts. *)
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify.
From LB Require Import Model Extremes Realise Existence Lemma2.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section SizesOneAndTwo.
Variables (W R : finType) (p : problem W R) (g h : W).
Hypotheses (free : forall i, ~~ must p i) (over : overloaded p) (sizes : forall i, 1 <= size p i <= 2).
Hypotheses (heavy : base p g = largest (base p)) (most : slots p g = largest (slots p)).
Hypotheses (light : base p h = smallest (base p)) (least : slots p h = smallest (slots p)).

Theorem gap_at_least (a : assignment W R) : feasible p a -> whole_gap_bound p 2 <= gap (load p a).
Proof.
move=> Hf; have full := feasible_full over Hf.
have Hg : base p g + slots p g <= load p a g.
  rewrite /load leq_add2l -full -sum1_card; apply: leq_sum => i _; by case/andP: (sizes i).
have Hh : load p a h <= base p h + 2 * slots p h.
  rewrite /load leq_add2l -full mulnC -sum_nat_const; apply: leq_sum => i _; by case/andP: (sizes i).
have := le_gap (load p a) g h; have := smallest_le (base p) g; rewrite -light.
have : gap (base p) = base p g - base p h by rewrite heavy light.
rewrite /whole_gap_bound -most -least => ->; lia.
Qed.

Theorem gap_attained (a : assignment W R) : leximax p a -> gap (load p a) = whole_gap_bound p 2.
Proof.
move=> Hl; apply/eqP; rewrite eqn_leq gap_at_least ?andbT; last by case: Hl => [[]].
by apply: gap_leximax => //; apply/card_gt0P; exists g.
Qed.
End SizesOneAndTwo.

(** Two workers of one slot, [k] and no tokens; two requests of 1 token and two of [s]. *)
Definition pair_step (k s : nat) : problem bool_finType (prod_finType bool_finType bool_finType) :=
  @Problem bool_finType (prod_finType bool_finType bool_finType)
    (fun g : bool => if g then k else 0) (fun=> 1) (fun i => if i.1 then s else 1) xpred0.

Lemma bools_sum (F : bool -> nat) : \sum_b F b = F true + F false.
Proof. exact: big_bool. Qed.

Lemma pair_largest (F : bool -> nat) : largest F = maxn (F true) (F false).
Proof. exact: big_bool. Qed.

Lemma pair_smallest (F : bool -> nat) : smallest F = minn (F true) (F false).
Proof.
have [g Hg] : exists g, F g = smallest F by apply: smallest_attained; rewrite card_bool.
have := smallest_le F true; have := smallest_le F false; rewrite -Hg; case: g {Hg}; lia.
Qed.

Lemma pair_overloaded k s : s != 1 -> overloaded (pair_step k s).
Proof.
move=> s1 x; rewrite /free_slots bools_sum /=.
have H (b : bool) : (if b then s else 1) != x -> 2 <= #|[set i : bool * bool | (if i.1 then s else 1) != x]|.
  move=> Hb; have c2 : #|[set (b, true); (b, false)]| = 2 by rewrite cards2 xpair_eqE andbF.
  by rewrite -{1}c2; apply: subset_leq_card; apply/subsetP => i; rewrite !inE => /orP[]/eqP->.
case: (x =P 1) => [E|x1]; first by apply: (H true); rewrite E.
by apply: (H false); rewrite eq_sym; apply/eqP.
Qed.

Lemma pair_leximax_exists k s : exists a, leximax (pair_step k s) a.
Proof.
by apply: leximax_exists; rewrite (_ : [set i | must (pair_step k s) i] = set0) ?cards0.
Qed.

(** With [s = 2]: D_pre = k, and the gap after is [k - 1], at every leximax optimum, for every [k]. *)
Theorem tight_two k : (exists a, leximax (pair_step k 2) a) /\
  forall a, leximax (pair_step k 2) a -> gap (load (pair_step k 2) a) = k - 1
                                      /\ whole_gap_bound (pair_step k 2) 2 = k - 1.
Proof.
split=> [|a Ha]; first exact: pair_leximax_exists.
have B : whole_gap_bound (pair_step k 2) 2 = k - 1.
  by rewrite /whole_gap_bound /gap !pair_largest !pair_smallest /=; lia.
split=> //; rewrite -B; apply: (gap_attained (g := true) (h := false)) => //.
- exact: pair_overloaded.
- by case=> [[] b] /=.
- by rewrite pair_largest /=; lia.
- by rewrite pair_largest.
- by rewrite pair_smallest /=; lia.
by rewrite pair_smallest.
Qed.

(** With [s = 3] and [k = 1] the second term of the bound is 0, and the gap is [s - 2 = 1]: all sizes are odd, so that
    the loads of the two workers are never equal. *)
Theorem tight_three : (exists a, leximax (pair_step 1 3) a) /\
  forall a, leximax (pair_step 1 3) a -> gap (load (pair_step 1 3) a) = 1
                                      /\ whole_gap_bound (pair_step 1 3) 3 = 1.
Proof.
split=> [|a Ha]; first exact: pair_leximax_exists.
have B : whole_gap_bound (pair_step 1 3) 3 = 1.
  by rewrite /whole_gap_bound /gap !pair_largest !pair_smallest.
have ov : overloaded (pair_step 1 3) by apply: pair_overloaded.
split=> //; apply/eqP; rewrite eqn_leq; apply/andP; split.
  rewrite -[X in _ <= X]B; apply: gap_leximax => //; first by apply/card_gt0P; exists true.
  by case=> [[] b].
have full := feasible_full ov (proj1 (proj1 Ha)).
have odd_load g : odd (load (pair_step 1 3) a g) = ~~ g.
  have /eqP/cards1P[i Hi] := full g; rewrite /load Hi big_set1.
  by case: g {Hi}; case: i => [[] b].
have := odd_load true; have := odd_load false; rewrite /gap pair_largest pair_smallest.
move: (load _ _ true) (load _ _ false) => x y Hy Hx.
have : x != y by apply/eqP => E; move: Hx; rewrite E Hy.
lia.
Qed.
