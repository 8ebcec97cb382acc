# Write a Coq file that asks every theorem and corollary of the given files which axioms it rests on.
FNR == 1 {
    file = FILENAME
    sub(/^.*\//, "", file)
    sub(/\.v$/, "", file)
    print "From LB Require " file "."
}
/^(Theorem|Corollary) / {
    name = $2
    sub(/:$/, "", name)
    print "Print Assumptions LB." file "." name "."
}
