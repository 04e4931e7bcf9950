# SPDX-License-Identifier: GPL-2.0-only
#
# Generates bindings_generated.rs of each module for the tree being built against, in $(obj)/rust/oxib/bindings for oxib.ko
# and $(obj)/rust/softib/bindings for softib.ko. Included by Kbuild.
#
# bindings.h in the folder of that name says what is bound, `parameters` how; types that the kernel crate has are not
# generated again (scripts/module_builder/reused-types.awk).

oxib-bindings := $(obj)/rust/oxib/bindings
softib-bindings := $(obj)/rust/softib/bindings

# Opaque in the kernel crate, or tied to what is opaque there.
oxib-own-types := net_device net napi_struct sk_buff

# rust/oxib/bindings.rs includes what this names.
$(obj)/rust/oxib/oxib.o: export OXIB_BINDINGS := $(abspath $(oxib-bindings))/bindings_generated.rs
$(obj)/rust/softib/softib.o: export OXIB_BINDINGS := $(abspath $(softib-bindings))/bindings_generated.rs

# GCC's flags that libclang does not know: the tree's own list.
ifdef CONFIG_CC_IS_GCC
oxib-skip-c-flags := $(shell awk '/^bindgen_skip_c_flags[ :]/ { list = 1; sub(/.*:=/, "") } \
	list { more = sub(/\\$$/, ""); print; if (!more) exit }' $(srctree)/rust/Makefile)
endif
oxib-bindgen-c-flags = $(filter-out $(oxib-skip-c-flags) $(CC_FLAGS_LTO),$(c_flags)) \
	-w --target=x86_64-linux-gnu -fno-builtin -D__BINDGEN__ -DMODULE

quiet_cmd_oxib_reused_types = GEN     $@
      cmd_oxib_reused_types = awk -v seeds="$(oxib-own-types)" -f $(filter %.awk,$^) \
	$(filter %.rs,$^) | LC_ALL=C sort | paste -s -d '|' >$@

$(oxib-bindings)/reused_types: $(objtree)/rust/bindings/bindings_generated.rs $(src)/scripts/module_builder/reused-types.awk FORCE
	$(call if_changed,oxib_reused_types)

# The tree's own parameters, without those that make an enum a type of its own with an attribute for control flow
# integrity (since Linux 7.3): modules outside the tree may not use that attribute, and no such enum is a parameter of
# a callback here.
oxib-tree-parameters = $(shell grep -Ehv '^$(pound)|^$$|^--(newtype-enum|with-attribute-custom-enum)' \
	$(srctree)/rust/bindgen_parameters)

# A constant that bindgen cannot work out from a macro goes into the header as OXIB_CONST_name.
quiet_cmd_oxib_bindgen = BINDGEN $@
      cmd_oxib_bindgen = \
	$(BINDGEN) $< $(oxib-tree-parameters) $(shell grep -Ehv '^$(pound)|^$$' $(filter %/parameters,$^)) \
		--blocklist-type "$$(cat $(filter %/reused_types,$^))" \
		--rust-target 1.85 --use-core --with-derive-default --ctypes-prefix ffi --no-layout-tests \
		--no-debug '.*' --enable-function-attribute-detection \
		-o $@ -- $(oxib-bindgen-c-flags) ; \
	sed -Ei 's/pub const OXIB_CONST_([a-zA-Z0-9_]*)/pub const \1/' $@

$(oxib-bindings)/bindings_generated.rs $(softib-bindings)/bindings_generated.rs: \
		$(obj)/%/bindings_generated.rs: $(src)/%/bindings.h $(src)/%/parameters $(oxib-bindings)/reused_types FORCE
	$(call if_changed_dep,oxib_bindgen)

targets += rust/oxib/bindings/reused_types rust/oxib/bindings/bindings_generated.rs rust/softib/bindings/bindings_generated.rs

$(obj)/rust/oxib/oxib.o: $(oxib-bindings)/bindings_generated.rs
$(obj)/rust/softib/softib.o: $(softib-bindings)/bindings_generated.rs
