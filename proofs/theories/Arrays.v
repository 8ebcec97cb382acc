(** * The definitions on arrays, to be computed

    [lbopt] holds an assignment as an array: the worker of each request, -1 where it waits. Here are loads,
    feasibility, cost, sorted loads and gap of arrays, as functions that Coq can run, and the proofs that they are
    those of [Model.v]. The generated file [build/Instances.v] compares them with what [lbopt.model] computes. *)
From Coq Require Import ZArith.
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify ssrZ.
From LB Require Import Model Extremes BestProfit Cases PricedEnvelopes Checker.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Functions.
Variables (x : input) (a : seq Z).

Definition array_count (g : nat) : nat := count (fun w => w =? Z.of_nat g)%Z a.
Definition array_load (g : nat) : Z :=
  (nth 0%Z (in_loads x) g + zsum (fun e => if (e.2 =? Z.of_nat g)%Z then e.1 else 0) (zip (in_sizes x) a))%Z.
Definition array_loads : seq Z := [seq array_load g | g <- iota 0 (seq.size (in_loads x))].
Definition largest_of (s : seq Z) : Z := foldr Z.max 0%Z s.
Definition smallest_of (s : seq Z) : Z := foldr Z.min (largest_of s) s.
Definition array_cost : Z := (Z.of_nat (seq.size (in_loads x)) * largest_of array_loads - zsum id array_loads)%Z.
Definition array_gap : Z := (largest_of array_loads - smallest_of array_loads)%Z.
Definition array_feasible : bool :=
  [&& all (fun g => array_count g <= nth 0 (in_slots x) g) (iota 0 (seq.size (in_loads x))),
      count (fun w => (0 <=? w)%Z) a == minn (seq.size (in_sizes x)) (sumn (in_slots x)) &
      all (fun e => ~~ e.1 || (0 <=? e.2)%Z) (zip (in_must x) a)].
End Functions.

Section Correct.
Variables (x : input) (a : seq Z).
Let G := seq.size (in_loads x).
Let N := seq.size (in_sizes x).
Hypothesis x_valid : valid x.
Hypothesis a_size : seq.size a = N.
Hypothesis a_range : all (fun w => (-1 <=? w)%Z && (w <? Z.of_nat G)%Z) a.

(** The assignment that an array is. *)
Definition assignment_of : assignment (ordinal_finType G) (ordinal_finType N) :=
  [ffun i : 'I_N => let w := nth (-1)%Z a i in if (0 <=? w)%Z then insub (Z.to_nat w) else None].
Local Notation b := assignment_of.
Local Notation p := (problem_of x).

Lemma entry_range (i : 'I_N) : (-1 <= nth (-1)%Z a i < Z.of_nat G)%Z.
Proof.
have Hi : i < seq.size a by rewrite a_size ltn_ord.
by have := all_nthP (-1)%Z a_range i Hi; lia.
Qed.

Lemma assignedE (i : 'I_N) (g : 'I_G) : (b i == Some g) = (nth (-1)%Z a i =? Z.of_nat g)%Z.
Proof.
have [H1 H2] := entry_range i; rewrite ffunE; cbv zeta; case: ifP => Hw; last by apply/esym/negbTE; lia.
have Hlt : Z.to_nat (nth (-1)%Z a i) < G by apply/ltP; lia.
rewrite insubT; apply/eqP/idP => [[<-] /=|H]; first by lia.
by congr Some; apply: val_inj; rewrite /=; lia.
Qed.

Lemma waitsE (i : 'I_N) : (b i != None) = (0 <=? nth (-1)%Z a i)%Z.
Proof.
have [H1 H2] := entry_range i; rewrite ffunE; cbv zeta; case: ifP => Hw //.
by rewrite insubT //; apply/ltP; lia.
Qed.

Lemma a_map : a = [seq nth (-1)%Z a (val i) | i <- enum 'I_N].
Proof. exact: list_as_map. Qed.

Lemma count_array (P : pred Z) (Q : pred 'I_N) : (forall i : 'I_N, Q i = P (nth (-1)%Z a i)) ->
  count P a = #|[set i | Q i]|.
Proof.
move=> E; rewrite [X in count _ X]a_map count_map -size_filter cardE; congr seq.size.
by rewrite /enum_mem -filter_predI; apply: eq_filter => i; rewrite /= in_set andbT E.
Qed.

Theorem array_load_correct (g : 'I_G) : array_load x a g = Z.of_nat (load p b g).
Proof.
have /and5P[_ _ _ HL HS] := x_valid.
have HLg : (0 <= nth 0%Z (in_loads x) g)%Z by have := all_nthP 0%Z HL g (ltn_ord g); lia.
rewrite /array_load /load Nat2Z.inj_add Z2Nat.id //; congr (_ + _)%Z.
rewrite (@list_as_map _ (0%Z, (-1)%Z) (zip (in_sizes x) a) N); last by rewrite size_zip a_size minnn.
rewrite zsum_map -zsum_enum.
have -> : enum (on b g) = filter (fun i => b i == Some g) (enum 'I_N).
  by rewrite /enum_mem -filter_predI; apply: eq_filter => i /=; rewrite inE andbT.
elim: (enum 'I_N) => //= i l ->; rewrite nth_zip ?a_size //= assignedE.
have HSi : (0 <= nth 0%Z (in_sizes x) i)%Z by have := all_nthP 0%Z HS i (ltn_ord i); lia.
by case: ifP => //= _; rewrite Z2Nat.id.
Qed.

Lemma array_loadsE : array_loads x a = [seq Z.of_nat (load p b g) | g <- enum 'I_G].
Proof.
rewrite /array_loads -val_enum_ord -map_comp; apply: eq_map => g; exact: array_load_correct.
Qed.

Lemma largest_ofE (F : 'I_G -> nat) : largest_of [seq Z.of_nat (F g) | g <- enum 'I_G] = Z.of_nat (largest F).
Proof.
rewrite /largest_of /largest -big_enum /=; elim: (enum 'I_G) => [|g l IH] /=; first by rewrite big_nil.
by rewrite big_cons IH; lia.
Qed.

Lemma smallest_ofE (F : 'I_G -> nat) : smallest_of [seq Z.of_nat (F g) | g <- enum 'I_G] = Z.of_nat (smallest F).
Proof.
rewrite /smallest_of largest_ofE /smallest -[index_enum _]enumT; move: (largest F) => M.
have min_Z (u v : nat) : Z.of_nat (minn u v) = Z.min (Z.of_nat u) (Z.of_nat v) by lia.
by elim: (enum 'I_G) => [|g l IH] /=; [rewrite big_nil | rewrite big_cons IH min_Z].
Qed.

Theorem array_cost_correct : array_cost x a = Z.of_nat (cost p b).
Proof.
rewrite /array_cost array_loadsE largest_ofE /cost /imbalance card_ord.
have -> : zsum id [seq Z.of_nat (load p b g) | g <- enum 'I_G] = Z.of_nat (\sum_g load p b g).
  rewrite zsum_map -[in RHS]big_enum /= /comp.
  by elim: (enum 'I_G) => [|g l IH] /=; [rewrite big_nil | rewrite big_cons [RHS]Nat2Z.inj_add; congr (_ + _)%Z].
have H : \sum_g load p b g <= G * largest (load p b).
  apply: leq_trans (_ : \sum_(g : 'I_G) largest (load p b) <= _); first by apply: leq_sum => g _; apply: le_largest.
  by rewrite sum_nat_const card_ord.
by rewrite Nat2Z.inj_sub ?Nat2Z.inj_mul //; apply/leP.
Qed.

Theorem array_gap_correct : array_gap x a = Z.of_nat (gap (load p b)).
Proof.
rewrite /array_gap array_loadsE largest_ofE smallest_ofE /gap Nat2Z.inj_sub //; apply/leP.
have /and5P[G0 _ _ _ _] := x_valid; have g : 'I_G by exact: Ordinal G0.
by apply: leq_trans (smallest_le _ g) (le_largest _ g).
Qed.

Theorem array_feasible_correct : array_feasible x a = feasible p b.
Proof.
have /and5P[_ /eqP Hslots /eqP Hmust _ _] := x_valid.
rewrite /array_feasible /feasible; congr [&& _, _ & _].
- apply/allP/forallP => [H g|H k].
    have := H (val g); rewrite mem_iota /= add0n ltn_ord => /(_ isT).
    by rewrite /array_count (count_array (Q := fun i => b i == Some g)) // => i; apply: assignedE.
  rewrite mem_iota /= add0n => Hk; have := H (Ordinal Hk).
  by rewrite /array_count (count_array (Q := fun i => b i == Some (Ordinal Hk))) // => i; apply: assignedE.
- rewrite (count_array (Q := fun i => b i != None)); last by move=> i; apply: waitsE.
  rewrite /num_admitted /free_slots card_ord; congr (_ == minn _ _).
  by rewrite /= [in LHS](@list_as_map _ 0 (in_slots x) G) // sumnE big_map big_enum.
apply/allP/forallP => [H i|H e].
  rewrite waitsE implybE; apply: (H (must p i, nth (-1)%Z a i)).
  rewrite -[(_, _)](@nth_zip _ _ false (-1)%Z (in_must x) a i); last by rewrite Hmust a_size.
  by rewrite mem_nth // size_zip Hmust a_size minnn.
case/(nthP (false, (-1)%Z)) => k; rewrite size_zip Hmust a_size minnn => Hk <-.
by rewrite nth_zip ?Hmust ?a_size //=; have := H (Ordinal Hk); rewrite waitsE implybE.
Qed.

End Correct.

(** ** The optimum of a small step, by trying every array *)
Definition choices (G : nat) : seq Z := (-1)%Z :: [seq Z.of_nat g | g <- iota 0 G].
Fixpoint all_arrays (G N : nat) : seq (seq Z) :=
  if N is N'.+1 then flatten [seq [seq w :: a | a <- all_arrays G N'] | w <- choices G] else [:: [::]].

Definition array_optimum (x : input) : option Z :=
  foldr (fun a best => if array_feasible x a
                       then Some (if best is Some m then Z.min (array_cost x a) m else array_cost x a) else best)
    None (all_arrays (seq.size (in_loads x)) (seq.size (in_sizes x))).

Lemma mem_all_arrays G N (a : seq Z) : (a \in all_arrays G N) = (seq.size a == N) && all (mem (choices G)) a.
Proof.
elim: N a => [|N IH] a; first by case: a.
rewrite -[all_arrays _ _]/(flatten [seq [seq w :: a | a <- all_arrays G N] | w <- choices G]).
case: a => [|w a]; first by apply/negbTE/flattenP => -[s /mapP[w _ ->] /mapP[]].
rewrite -[RHS]/[&& seq.size a == N, w \in choices G & all (mem (choices G)) a].
apply/flattenP/and3P => [[s /mapP[v vc ->] /mapP[a' Ha [-> ->]]]|[Hs Hw Ha]].
  by move: Ha; rewrite IH => /andP[-> ->].
exists [seq w :: a | a <- all_arrays G N]; first exact: (map_f (fun w => [seq w :: a | a <- all_arrays G N]) Hw).
by apply: map_f; rewrite IH Hs.
Qed.

Lemma choices_range G w : (w \in choices G) = (-1 <=? w)%Z && (w <? Z.of_nat G)%Z.
Proof.
rewrite inE; apply/orP/idP => [[/eqP->|/mapP[g + ->]]|H]; first by lia.
  by rewrite mem_iota /= add0n; lia.
case: (Z.leb_spec 0 w) => w0; last by left; apply/eqP; lia.
right; apply/mapP; exists (Z.to_nat w); last by lia.
by rewrite mem_iota /= add0n; lia.
Qed.

Section Optimum.
Variable x : input.
Let G := seq.size (in_loads x).
Let N := seq.size (in_sizes x).
Hypothesis x_valid : valid x.

Definition array_of (b : assignment (ordinal_finType G) (ordinal_finType N)) : seq Z :=
  [seq if b i is Some g then Z.of_nat (val g) else (-1)%Z | i <- enum 'I_N].

Lemma size_array_of b : seq.size (array_of b) = N.
Proof. by rewrite size_map size_enum_ord. Qed.

Lemma range_array_of b : all (fun w => (-1 <=? w)%Z && (w <? Z.of_nat G)%Z) (array_of b).
Proof.
apply/allP => w /mapP[i _ ->]; case: (b i) => [g|]; last by have /and5P[H _ _ _ _] := x_valid; rewrite /G; lia.
by have /ltP := ltn_ord g; rewrite -[val g]/(nat_of_ord g); lia.
Qed.

Lemma assignment_of_array b : assignment_of x (array_of b) = b.
Proof.
apply/ffunP => i; rewrite ffunE; cbv zeta; rewrite (nth_map i) ?size_enum_ord // nth_ord_enum.
case: (b i) => [g|] //=; have -> : (0 <=? Z.of_nat g)%Z by lia.
by rewrite Nat2Z.id -[nat_of_ord g]/(val g) valK.
Qed.

Lemma in_all_arrays b : array_of b \in all_arrays G N.
Proof.
rewrite mem_all_arrays size_array_of eqxx /=; apply/allP => w wb.
by rewrite /= choices_range; have /allP := range_array_of b; apply.
Qed.

Lemma fold_least (l : seq (seq Z)) (m : option Z) :
  m = foldr (fun a best => if array_feasible x a
        then Some (if best is Some m then Z.min (array_cost x a) m else array_cost x a) else best) None l ->
  (forall a, a \in l -> array_feasible x a -> exists2 v, m = Some v & (v <= array_cost x a)%Z) /\
  (forall v, m = Some v -> exists a, [/\ a \in l, array_feasible x a & array_cost x a = v]).
Proof.
elim: l m => [|a l IH] m -> //=; have [IH1 IH2] := IH _ (erefl _); move: IH1 IH2.
set r := foldr _ _ _ => IH1 IH2; case: ifP => Ha; split.
- move=> b; rewrite inE => /orP[/eqP->|bl] Hb; first by case: r {IH1 IH2} => [v|]; eexists; try reflexivity; lia.
  by have [v -> Hv] := IH1 b bl Hb; eexists; first reflexivity; lia.
- move=> v [<-]; case E: r => [u|]; last by exists a; rewrite mem_head.
  have [b [bl Hb Hv]] := IH2 u E; case: (Z.leb_spec (array_cost x a) u) => H.
    by exists a; rewrite mem_head; split=> //; lia.
  by exists b; rewrite inE bl orbT; split=> //; lia.
- by move=> b; rewrite inE => /orP[/eqP->|]; [rewrite Ha | exact: IH1].
by move=> v /IH2[b [bl Hb Hv]]; exists b; rewrite inE bl orbT.
Qed.

(** The least cost among all arrays is the cost of every optimal assignment. *)
Theorem array_optimum_correct b : optimal (problem_of x) b -> array_optimum x = Some (Z.of_nat (cost (problem_of x) b)).
Proof.
case=> Hf Ho; have [H1 H2] := @fold_least (all_arrays G N) (array_optimum x) (erefl _).
have Eb := array_cost_correct x_valid (size_array_of b) (range_array_of b).
have Fb := array_feasible_correct x_valid (size_array_of b) (range_array_of b).
rewrite assignment_of_array in Eb Fb.
have [v Ev Hv] := H1 _ (in_all_arrays b) (etrans Fb Hf).
rewrite Ev; congr Some; have [a [al Ha Hva]] := H2 v Ev; move: al; rewrite mem_all_arrays => /andP[/eqP as_ ar].
have ra : all (fun w => (-1 <=? w)%Z && (w <? Z.of_nat G)%Z) a.
  by apply: sub_all ar => w; rewrite -choices_range.
have Ea := array_cost_correct x_valid as_ ra; have Fa := array_feasible_correct x_valid as_ ra.
by have := Ho _ (etrans (esym Fa) Ha); rewrite Eb in Hv; rewrite -Hva Ea in Hv *; lia.
Qed.
End Optimum.
