(** * Cases: what is left to decide, and prices that refute it

    Requests are told apart by their class alone: class [k] has the size [sizes k], and a forced class has to be
    admitted whole. A *case* is what is left after some decisions: copies of each class, workers with (slots, room),
    and the tokens that still have to be admitted. A *filling* gives every worker as many requests as it has slots,
    within its room. A case is impossible if no filling admits what is needed.

    Prices refute cases. Fix a price [y k] per class and a scale [S]. A filling that admits [T] tokens has

      [S T = sum of (S size - y) over its requests + sum of y over its requests
           <= sum_g B_g + sum_k left_k y_k - (least price of the requests that wait)],

    with [B_g] at least the profit of every pattern of worker [g]. If that is less than [S need], the case is
    impossible. Prices may have any sign: exactly [sum of the copies - sum of the slots] requests wait, none of them
    of a forced class, and their prices are at least so many of the smallest. In Python:
    [lbopt/solvers/certificates/priced.py]. *)
From Coq Require Import ZArith.
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify ssrZ.
From LB Require Import BestProfit.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(** ** Lists of lists *)
Lemma zsum_flatten (T : Type) (F : T -> Z) (ss : seq (seq T)) : zsum F (flatten ss) = zsum (zsum F) ss.
Proof. by elim: ss => //= s ss IH; rewrite zsum_cat IH. Qed.

Lemma flatten_set (T : eqType) (ts : seq (seq T)) g t : g < size ts ->
  perm_eq (flatten (set_nth [::] ts g t)) (t ++ flatten (set_nth [::] ts g [::])).
Proof.
elim: ts g => // s ts IH [|g] Hg; first exact: perm_refl.
rewrite /= (perm_trans (y := s ++ (t ++ flatten (set_nth [::] ts g [::])))) //; last by rewrite perm_catCA.
by rewrite perm_cat2l; apply: IH.
Qed.

Lemma set_nth_same (T : Type) (x0 : T) s g : g < size s -> set_nth x0 s g (nth x0 s g) = s.
Proof. by elim: s g => // x s IH [|g] //= H; rewrite IH. Qed.

Lemma flatten_nth (T : eqType) (ts : seq (seq T)) g : g < size ts ->
  perm_eq (flatten ts) (nth [::] ts g ++ flatten (set_nth [::] ts g [::])).
Proof. by move=> Hg; rewrite -{1}(set_nth_same [::] Hg); apply: flatten_set. Qed.

Lemma size_set_nth_in (T : Type) (x0 : T) s g x : g < size s -> size (set_nth x0 s g x) = size s.
Proof. by move=> Hg; rewrite size_set_nth; apply/maxn_idPr. Qed.

Lemma count_copies (T : eqType) (f : T -> nat) (s : seq T) k :
  count_mem k (flatten [seq nseq (f x) x | x <- s]) = count_mem k s * f k.
Proof.
elim: s => //= x s IH; rewrite count_cat count_nseq IH mulnDl /=; congr addn.
by case: (x =P k) => [->|]; rewrite ?mul1n.
Qed.

Lemma count_iota k n : count_mem k (iota 0 n) = (k < n).
Proof. by rewrite count_uniq_mem ?iota_uniq // mem_iota. Qed.

(** A sum over requests is a sum over classes. *)
Lemma zsum_by_class (y : nat -> Z) (t : seq nat) n : (forall k, k \in t -> k < n) ->
  zsum y t = zsum (fun k => (Z.of_nat (count_mem k t) * y k)%Z) (iota 0 n).
Proof.
elim: t => [|x t IH] H /=; first by elim: (iota 0 n) => //= k s <-.
rewrite IH; last by move=> k kt; apply: H; rewrite inE kt orbT.
have xn : x < n by apply: H; exact: mem_head.
have -> : zsum (fun k => (Z.of_nat ((x == k) + count_mem k t) * y k)%Z) (iota 0 n) =
    zsum (fun k => (Z.of_nat (x == k) * y k + Z.of_nat (count_mem k t) * y k)%Z) (iota 0 n).
  elim: (iota 0 n) => //= k s ->; rewrite Nat2Z.inj_add; lia.
rewrite zsum_add; congr (_ + _)%Z.
have : x \in iota 0 n by rewrite mem_iota.
have := iota_uniq 0 n; elim: (iota 0 n) => //= k s IHs /andP[ks us]; rewrite inE.
case: (x =P k) => [->|xk] => [_|xs]; last by rewrite -IHs.
suff -> : zsum (fun j => (Z.of_nat (k == j) * y j)%Z) s = 0%Z by lia.
elim: s ks {us IHs} => //= j s IHj; rewrite inE negb_or => /andP[kj /IHj->].
by rewrite (negbTE kj).
Qed.

(** The [n] smallest of a list are together at most any [n] of it. *)
Lemma least_of_sortedZ (xs ys : seq Z) : sorted Z.leb ys -> subseq xs ys ->
  (zsum id (take (size xs) ys) <= zsum id xs)%Z.
Proof.
have leb_trans : transitive Z.leb by move=> b a c; lia.
elim: ys xs => [|y ys IH] [|x xs] //= Hs; have Hs' := path_sorted Hs.
case: (x =P y) => [->|_] Hsub; first by have := IH xs Hs' Hsub; lia.
have : (zsum id (take (size xs) ys) <= zsum id xs)%Z.
  by apply: IH => //; apply: subseq_trans (subseq_cons xs x) Hsub.
have : (y <= x)%Z; last lia.
have /allP H := order_path_min leb_trans Hs; have := H x; rewrite (mem_subseq Hsub) ?mem_head // => /(_ isT); lia.
Qed.

(** ** Cases *)
Record case := Case {
  left : seq nat;            (* copies of each class *)
  workers : seq (nat * Z);   (* free slots and room of each worker *)
  need : Z                   (* tokens that still have to be admitted *)
}.

Section Cases.
Variables (sizes : seq Z) (forced : seq bool).
Hypothesis sizes_ge0 : all (fun v => (0 <=? v)%Z) sizes.
Implicit Types (c : case) (ts : seq (seq nat)).

Definition size_of (k : nat) : Z := nth 0%Z sizes k.
Definition is_forced (k : nat) : bool := nth false forced k.

Definition worker c g := nth (0, 0%Z) (workers c) g.
Definition copies c k := nth 0 (left c) k.
Definition num_slots c := sumn (map fst (workers c)).

Definition fits (t : seq nat) (w : nat * Z) : Prop := size t = w.1 /\ (zsum size_of t <= w.2)%Z.

Definition filling c ts : Prop :=
  [/\ size ts = size (workers c),
      forall g, g < size (workers c) -> fits (nth [::] ts g) (worker c g),
      forall k, count_mem k (flatten ts) <= copies c k &
      forall k, is_forced k -> count_mem k (flatten ts) = copies c k].

Definition impossible c : Prop := forall ts, filling c ts -> (zsum size_of (flatten ts) < need c)%Z.

Lemma size_of_ge0 k : (0 <= size_of k)%Z.
Proof.
rewrite /size_of; case: (ltnP k (size sizes)) => H; last by rewrite nth_default.
by have := all_nthP 0%Z sizes_ge0 k H; lia.
Qed.

Lemma filling_slots c ts : filling c ts -> size (flatten ts) = num_slots c.
Proof.
case=> Hsz Hfit _ _; rewrite size_flatten /shape /num_slots; congr sumn.
apply: (@eq_from_nth _ 0); first by rewrite !size_map.
move=> g; rewrite size_map Hsz => Hg; rewrite (nth_map [::]) ?Hsz // (nth_map (0, 0%Z)) //.
by have [] := Hfit g Hg.
Qed.

Lemma filling_class c ts k : filling c ts -> k \in flatten ts -> k < size (left c).
Proof.
case=> _ _ Hc _ kt; rewrite ltnNge; apply/negP => H.
have := Hc k; rewrite /copies nth_default // leqn0 => /eqP/count_memPn; by rewrite kt.
Qed.

(** ** The bound by prices *)
Variables (y : nat -> Z) (scale : Z).

Definition profit_of (k : nat) : Z := (scale * size_of k - y k)%Z.

(** Prices of all copies of the classes that may wait, and of all copies. *)
Definition waiting_prices (n : seq nat) : seq Z :=
  flatten [seq nseq (nth 0 n k) (y k) | k <- iota 0 (size n) & ~~ is_forced k].
Definition price_sum (n : seq nat) : Z :=
  zsum (fun k => (Z.of_nat (nth 0%N n k) * y k)%Z) (iota 0 (size n)).

(** The requests that wait in the end have at least the smallest prices. *)
Definition least_waiting c : Z :=
  zsum id (take (sumn (left c) - num_slots c) (sort Z.leb (waiting_prices (left c)))).

Definition bound (c : case) (bests : seq Z) : Z := (price_sum (left c) - least_waiting c + zsum id bests)%Z.

Lemma subseq_copies (f h : nat -> nat) (s : seq nat) : (forall k, f k <= h k) ->
  subseq (flatten [seq nseq (f k) (y k) | k <- s]) (flatten [seq nseq (h k) (y k) | k <- s]).
Proof.
move=> H; elim: s => //= k s IH; apply: cat_subseq => //.
by rewrite -(subnKC (H k)) nseqD prefix_subseq.
Qed.

Lemma zsum_nseq n (x : Z) : zsum id (nseq n x) = (Z.of_nat n * x)%Z.
Proof.
elim: n => // n IH; have -> : zsum id (nseq n.+1 x) = (x + zsum id (nseq n x))%Z by [].
by rewrite IH Nat2Z.inj_succ; lia.
Qed.

Lemma sumn_iota (n : seq nat) : sumn [seq nth 0 n k | k <- iota 0 (size n)] = sumn n.
Proof. by congr sumn; rewrite -/(mkseq _ _) mkseq_nth. Qed.

Lemma size_by_class (t : seq nat) n : (forall k, k \in t -> k < n) ->
  sumn [seq count_mem k t | k <- iota 0 n] = size t.
Proof.
move=> H; apply: Nat2Z.inj.
have E (s : seq nat) (f : nat -> nat) :
    Z.of_nat (sumn [seq f k | k <- s]) = zsum (fun k => (Z.of_nat (f k) * 1)%Z) s.
  by elim: s => //= k s IH; rewrite Nat2Z.inj_add IH; lia.
rewrite E -(zsum_by_class (fun=> 1%Z) H).
elim: t {H} => // x t IH; have -> : zsum (fun=> 1%Z) (x :: t) = (1 + zsum (fun=> 1%Z) t)%Z by [].
by rewrite IH [size (x :: t)]/= Nat2Z.inj_succ; lia.
Qed.

Lemma price_of_admitted c ts : filling c ts ->
  (zsum y (flatten ts) <= price_sum (left c) - least_waiting c)%Z.
Proof.
move=> Hfill; have [_ _ Hc0 Hf0] := Hfill; set t := flatten ts.
have Hcl k : k \in t -> k < size (left c) by exact: (filling_class Hfill).
pose m (k : nat) : nat := count_mem k t.
have Hc k : m k <= nth 0 (left c) k by exact: Hc0.
have Hf k : is_forced k -> m k = nth 0 (left c) k by exact: Hf0.
have Ey : zsum y t = zsum (fun k => (Z.of_nat (m k) * y k)%Z) (iota 0 (size (left c))) by exact: zsum_by_class.
have Et : sumn [seq m k | k <- iota 0 (size (left c))] = size t by exact: size_by_class.
pose f k := nth 0 (left c) k - m k.
pose W := flatten [seq nseq (f k) (y k) | k <- iota 0 (size (left c)) & ~~ is_forced k].
have sumW : zsum id W = (price_sum (left c) - zsum y t)%Z.
  rewrite Ey /W /price_sum; elim: (iota 0 (size (left c))) => //= k s IH; have := Hc k; have := Hf k.
  case: (is_forced k) => /= [/(_ isT) -> _|_ H]; first by rewrite IH; ring.
  by rewrite zsum_cat zsum_nseq IH /f Nat2Z.inj_sub; [ring | apply/leP].
have sizeW : size W = sumn (left c) - num_slots c.
  rewrite -(filling_slots Hfill) -/t -Et -sumn_iota /W.
  have E (s : seq nat) : size (flatten [seq nseq (f k) (y k) | k <- s & ~~ is_forced k]) +
      sumn [seq m k | k <- s] = sumn [seq nth 0 (left c) k | k <- s].
    elim: s => //= k s IH; have := Hc k; have := Hf k.
    case: (is_forced k) => /= [/(_ isT) -> _|_ H]; first by rewrite -IH; lia.
    by rewrite size_cat size_nseq -IH /f; lia.
  by rewrite -E addnK.
have subW : subseq W (waiting_prices (left c)) by apply: subseq_copies => k; apply: leq_subr.
have leb_total : total Z.leb by move=> a b; lia.
have leb_trans : transitive Z.leb by move=> b a d; lia.
have := least_of_sortedZ (sort_sorted leb_total _) (subseq_sort leb_total leb_trans subW).
rewrite size_sort sizeW -/(least_waiting c) (zsum_perm id (permEl (perm_sort _ W))) sumW; lia.
Qed.

Lemma total_profit ts : (scale * zsum size_of (flatten ts) = zsum profit_of (flatten ts) + zsum y (flatten ts))%Z.
Proof.
elim: (flatten ts) => [|k t IH] /=; first by rewrite Z.mul_0_r.
by rewrite Z.mul_add_distr_l IH {2}/profit_of; ring.
Qed.

(** The bound for one filling, from numbers that are at least the profit of each of its patterns. *)
Theorem bound_sound c bests ts : filling c ts -> size bests = size (workers c) ->
  (forall g, g < size (workers c) -> (zsum profit_of (nth [::] ts g) <= nth 0%Z bests g)%Z) ->
  (scale * zsum size_of (flatten ts) <= bound c bests)%Z.
Proof.
move=> Hfill Hsize; rewrite -Hsize => Hcov; rewrite total_profit /bound.
have H1 := price_of_admitted Hfill.
suff H2 : (zsum profit_of (flatten ts) <= zsum id bests)%Z by lia.
have [Hsz _ _ _] := Hfill; rewrite zsum_flatten.
have : size ts = size bests by rewrite Hsz Hsize.
elim: ts bests Hcov {Hfill Hsz H1 Hsize} => [|t ts IH] [|b bests] //= Hcov [E].
have := Hcov 0 isT; rewrite /= => H0.
suff : (zsum (zsum profit_of) ts <= zsum id bests)%Z by lia.
by apply: IH => // g Hg; apply: (Hcov g.+1).
Qed.

(** ** The best profits of a case, by a table *)
Definition most_slots c : nat := foldr maxn 0 (map fst (workers c)).
Definition largest_room c : Z := foldr Z.max 0%Z (map snd (workers c)).
Definition items (n : seq nat) (most : nat) : seq nat :=
  flatten [seq nseq (minn (nth 0 n k) most) k | k <- iota 0 (size n)].
Definition table_of c : seq row :=
  table size_of profit_of (largest_room c) (most_slots c) (items (left c) (most_slots c)).

(** [None]: some worker has no pattern at all. *)
Definition bests_of (rows : seq row) (ws : seq (nat * Z)) : option (seq Z) :=
  foldr (fun w bs => if bs is Some bs then if best rows w.1 w.2 is Some b then Some (b :: bs) else None else None)
    (Some [::]) ws.

Lemma bests_ofP rows ws bs : bests_of rows ws = Some bs ->
  size bs = size ws /\ forall g, g < size ws ->
    best rows (nth (0, 0%Z) ws g).1 (nth (0, 0%Z) ws g).2 = Some (nth 0%Z bs g).
Proof.
elim: ws bs => [|w ws IH] bs /=; first by case=> <-.
case E: (bests_of rows ws) => [bs'|//]; case Eb: (best rows w.1 w.2) => [b|//] [<-] /=.
by have [-> H] := IH _ E; split=> // -[|g] //= Hg; apply: H.
Qed.

Lemma bests_of_none rows ws : bests_of rows ws = None ->
  exists2 g, g < size ws & best rows (nth (0, 0%Z) ws g).1 (nth (0, 0%Z) ws g).2 = None.
Proof.
elim: ws => //= w ws IH; case E: (bests_of rows ws) => [bs'|].
  by case Eb: (best rows w.1 w.2) => [b|] // _; exists 0.
by move=> _; have [g Hg H] := IH E; exists g.+1.
Qed.

Lemma slots_most c g : g < size (workers c) -> (worker c g).1 <= most_slots c.
Proof.
rewrite /worker /most_slots; elim: (workers c) g => //= w ws IH [|g] /= Hg; first exact: leq_maxl.
by apply: leq_trans (IH _ Hg) (leq_maxr _ _).
Qed.

Lemma room_largest c g : g < size (workers c) -> ((worker c g).2 <= largest_room c)%Z.
Proof.
rewrite /worker /largest_room; elim: (workers c) g => //= w ws IH [|g] /= Hg; first lia.
by have := IH _ Hg; lia.
Qed.

(** What a pattern needs of the table: few requests, and of each class no more than are left. *)
Lemma within_items (n : seq nat) most (t : seq nat) : size t <= most ->
  (forall k, count_mem k t <= nth 0 n k) -> within t (items n most).
Proof.
move=> Hm Hc k; rewrite /items (count_copies (fun k => minn (nth 0 n k) most)) count_iota.
case: (ltnP k (size n)) => Hk; last by have := Hc k; rewrite nth_default.
by rewrite mul1n leq_min Hc /=; apply: leq_trans (count_size _ _) Hm.
Qed.

Lemma pattern_copies c ts g k : filling c ts -> g < size (workers c) ->
  count_mem k (nth [::] ts g) <= copies c k.
Proof.
case=> Hsz _ Hc _ Hg; apply: leq_trans (Hc k).
by rewrite (permP (flatten_nth (ts := ts) (g := g) _)) ?Hsz // count_cat leq_addr.
Qed.

(** The table of a case serves every pattern made of its copies with as many slots and as much room at most. *)
Lemma table_of_sound c t r : size t <= most_slots c -> (zsum size_of t <= r)%Z -> (r <= largest_room c)%Z ->
  (forall k, count_mem k t <= copies c k) ->
  exists2 b, best (table_of c) (size t) r = Some b & (zsum profit_of t <= b)%Z.
Proof.
by move=> Hm Hr Hroom Hc; apply: best_sound => //; [exact: size_of_ge0 | exact: within_items].
Qed.

Lemma filling_best c ts g : filling c ts -> g < size (workers c) ->
  exists2 b, best (table_of c) (worker c g).1 (worker c g).2 = Some b & (zsum profit_of (nth [::] ts g) <= b)%Z.
Proof.
move=> Hfill Hg; have [_ Hfit _ _] := Hfill; have [Hs Hr] := Hfit g Hg; rewrite -Hs; apply: table_of_sound => //.
- by rewrite Hs slots_most.
- exact: room_largest.
by move=> k; apply: pattern_copies.
Qed.

Lemma bests_cover c bs ts : bests_of (table_of c) (workers c) = Some bs -> filling c ts ->
  size bs = size (workers c) /\
  forall g, g < size (workers c) -> (zsum profit_of (nth [::] ts g) <= nth 0%Z bs g)%Z.
Proof.
move=> /bests_ofP[Hsize H] Hfill; split=> // g Hg.
have [b Hb] := filling_best Hfill Hg; have := H g Hg; rewrite -/(worker c g) Hb => -[->].
by [].
Qed.

Lemma bests_exist c ts : filling c ts -> exists bs, bests_of (table_of c) (workers c) = Some bs.
Proof.
move=> Hfill; case E: (bests_of _ _) => [bs|]; first by exists bs.
have [g Hg Hn] := bests_of_none E; have [b] := filling_best Hfill Hg.
by rewrite /worker Hn.
Qed.

(** More forced copies than slots, or fewer copies than slots: no filling. *)
Definition forced_copies c : nat := sumn [seq copies c k | k <- iota 0 (size (left c)) & is_forced k].
Definition unfillable c : bool := (num_slots c < forced_copies c) || (sumn (left c) < num_slots c).

Lemma unfillable_sound c ts : unfillable c -> ~ filling c ts.
Proof.
move=> H Hfill; have [_ _ Hc Hf] := Hfill; move: H; rewrite /unfillable -(filling_slots Hfill).
rewrite -(size_by_class (fun k kt => filling_class Hfill kt)) -(sumn_iota (left c)) /forced_copies.
have H1 (s : seq nat) : sumn [seq copies c k | k <- s & is_forced k] <= sumn [seq count_mem k (flatten ts) | k <- s].
  elim: s => //= k s IH; have := Hf k; case: (is_forced k) => /= [/(_ isT) ->|_]; last lia.
  by rewrite leq_add2l.
have H2 (s : seq nat) : sumn [seq count_mem k (flatten ts) | k <- s] <= sumn [seq nth 0 (left c) k | k <- s].
  by elim: s => //= k s IH; apply: leq_add => //; apply: Hc.
by move: (H1 (iota 0 (size (left c)))) (H2 (iota 0 (size (left c)))); lia.
Qed.

(** The test: these prices leave no filling that admits what is needed. *)
Definition refutes c : bool :=
  unfillable c ||
  (if bests_of (table_of c) (workers c) is Some bs then (bound c bs <? scale * need c)%Z else true).

Hypothesis scale_pos : (0 < scale)%Z.

Theorem refutes_sound c : refutes c -> impossible c.
Proof.
rewrite /refutes => H ts Hfill; case/orP: H => [/unfillable_sound/(_ Hfill)//|].
have [bs E] := bests_exist Hfill; rewrite E => H; have [Hs Hc] := bests_cover E Hfill.
by have := bound_sound Hfill Hs Hc; nia.
Qed.

End Cases.
