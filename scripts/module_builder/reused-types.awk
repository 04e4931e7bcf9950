# SPDX-License-Identifier: GPL-2.0-only
#
# Print the C types that oxib takes from the kernel crate's bindings instead of generating them again, one a line:
# every type that is whole there. Not taken are the seeds (-v seeds="a b c"), which oxib generates itself, and what
# names a seed in its fields, so that following a pointer from one to the other needs no cast.
#
# Input: the tree's rust/bindings/bindings_generated.rs.

BEGIN {
	split(seeds, names, " ")
	for (i in names)
		seed[names[i]] = 1
}

# An inner anonymous type goes with the type around it.
function family(name) {
	sub(/__bindgen_ty.*/, "", name)
	return name
}

/^pub (struct|union) [A-Za-z0-9_]+ \{/ {
	type = $3
	whole[type] = 1
	if (family(type) in seed)
		own[family(type)] = 1
	next
}

/^}/ { type = "" }

type == "" { next }

# How bindgen says that it has not seen what is in a type.
/^    (_unused: \[u8; 0\]|pub _address: u8),/ { delete whole[type] }

{
	sub(/^ *pub [A-Za-z0-9_]+:/, "")
	count = split($0, word, /[^A-Za-z0-9_]+/)
	for (i = 1; i <= count; i++)
		if (word[i] in seed && !(word[i - 1] == "ffi"))
			own[family(type)] = 1
}

END {
	for (type in whole)
		if (!(family(type) in own) && type !~ /^__Bindgen|^__Incomplete/)
			print type
}
