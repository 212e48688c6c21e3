//! The attributes `#[law]` and `#[bug]`: what is said about a check or about a wrong step is written above its code,
//! and becomes an entry of the component's list.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, FnArg, Ident, ItemFn, ItemImpl, LitStr, Result, Token, Type};

/// Makes an `Invariant` of a check. Its sentence is the documentation of the function.
///
/// ```text
/// /// Changing the sign of x changes the sign of y, and nothing else.
/// #[law("norm/odd", see = "norm#definition", about = Statistics, points = 1, formula = "N(−x) = −N(x)", stays = "Why.")]
/// fn odd(norm: &Norm, run: &Run) -> Verdict { .. }
/// ```
///
/// `see` is the section that explains it, `about` a `Category`, and `stays` is left out where some bug is caught by this law alone. The
/// entry is `odd::LAW`.
#[proc_macro_attribute]
pub fn law(arguments: TokenStream, item: TokenStream) -> TokenStream {
    made(law_of(arguments, item))
}

/// Makes a `Bug` of one step of the loops written wrong. The first paragraph above it ends the sentence "The code ..", and the others are its
/// story.
///
/// ```text
/// /// adds eps to the root, outside, not to the mean square under it
/// ///
/// /// rms + eps also keeps away from 0.
/// #[bug("norm/eps-outside-root", named_by = "norm/eps-inside-root", source = "Where it happened.")]
/// impl NormLoops for EpsOutside { .. }
/// ```
///
/// The struct is made here, and the entry is `EpsOutside::BUG`. Where a bug keeps something, its struct is given, and `of` makes one:
/// `of = GoesOn::default()`.
#[proc_macro_attribute]
pub fn bug(arguments: TokenStream, item: TokenStream) -> TokenStream {
    made(bug_of(arguments, item))
}

fn made(tokens: Result<Tokens>) -> TokenStream {
    tokens.unwrap_or_else(Error::into_compile_error).into()
}

fn law_of(arguments: TokenStream, item: TokenStream) -> Result<Tokens> {
    let mut said: Said = syn::parse(arguments)?;
    let check: ItemFn = syn::parse(item)?;
    let sentence = paragraphs(&check.attrs).join(" ");
    if sentence.is_empty() {
        return Err(Error::new(check.sig.span(), "a law says above it what must be true"));
    }
    let (id, name, seen) = (said.id.clone(), &check.sig.ident, &check.vis);
    let interface = match check.sig.inputs.first() {
        Some(FnArg::Typed(first)) => match &*first.ty {
            Type::Reference(reference) => &reference.elem,
            other => return Err(Error::new(other.span(), "a law takes `&` of its interface")),
        },
        _ => {
            return Err(Error::new(
                check.sig.span(),
                "a law takes `&` of its interface, and a run",
            ));
        }
    };
    let [see, about, points, formula] =
        [said.take("see")?, said.take("about")?, said.take("points")?, said.take("formula")?];
    let stays = option(said.take("stays").ok());
    said.has_no_more()?;
    Ok(quote! {
        #check

        #[allow(non_camel_case_types)]
        #seen enum #name {}

        impl #name {
            #seen const LAW: crate::component::Invariant<#interface> = crate::component::Invariant {
                id: #id,
                sentence: #sentence,
                formula: #formula,
                chapter: #see,
                category: crate::category::Category::#about,
                weight: #points,
                stays: #stays,
                check: #name,
            };
        }
    })
}

fn bug_of(arguments: TokenStream, item: TokenStream) -> Result<Tokens> {
    let mut said: Said = syn::parse(arguments)?;
    let mut wrong: ItemImpl = syn::parse(item)?;
    let told = paragraphs(&wrong.attrs);
    let [misconception, story @ ..] = &told[..] else {
        return Err(Error::new(wrong.span(), "a bug says above it what the code does wrong"));
    };
    let story = story.join(" ");
    // No documentation has it.
    wrong.attrs.retain(|attribute| !attribute.path().is_ident("doc"));
    let (id, name) = (said.id.clone(), &wrong.self_ty);
    let named_by = said.take("named_by")?;
    let source = option(said.take("source").ok());
    let (declared, implementation) = match said.take("of") {
        Ok(kept) => (quote!(), quote!(#kept)),
        Err(_) => (quote!(pub(super) struct #name;), quote!(#name)),
    };
    said.has_no_more()?;
    let id_text = id.value();
    let component = format_ident!("{}", id_text.split('/').next().unwrap_or_default());
    Ok(quote! {
        #declared

        #wrong

        impl #name {
            pub(super) const BUG: crate::component::Bug<crate::#component::Interface> = crate::component::Bug {
                id: #id,
                misconception: #misconception,
                story: #story,
                source: #source,
                named_by: #named_by,
                implementation: || crate::#component::oracle::implementation(#implementation),
            };
        }
    })
}

/// The contents of an attribute's brackets: an id, then `name = value`.
struct Said {
    id: LitStr,
    values: Vec<(Ident, Expr)>,
}

impl Parse for Said {
    fn parse(input: ParseStream) -> Result<Self> {
        let (id, mut values) = (input.parse()?, Vec::new());
        while input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
            let name = input.parse()?;
            input.parse::<Token![=]>()?;
            values.push((name, input.parse()?));
        }
        Ok(Self { id, values })
    }
}

impl Said {
    fn take(&mut self, name: &str) -> Result<Expr> {
        match self.values.iter().position(|(said, _)| said == name) {
            Some(at) => Ok(self.values.remove(at).1),
            None => Err(Error::new(self.id.span(), format!("`{name} = ..` is missing"))),
        }
    }

    fn has_no_more(&self) -> Result<()> {
        match self.values.first() {
            Some((name, _)) => {
                Err(Error::new(name.span(), format!("nothing is known of `{name}`")))
            }
            None => Ok(()),
        }
    }
}

fn option(value: Option<Expr>) -> Tokens {
    value.map_or_else(|| quote!(None), |value| quote!(Some(#value)))
}

/// The documentation of an item, a line for each paragraph.
fn paragraphs(attributes: &[Attribute]) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for attribute in attributes {
        let Ok(line) = attribute.meta.require_name_value() else { continue };
        let Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &line.value else {
            continue;
        };
        let (text, last) = (text.value(), paragraphs.len() - 1);
        match text.trim() {
            "" => paragraphs.push(String::new()),
            text if paragraphs[last].is_empty() => paragraphs[last] = text.to_string(),
            text => paragraphs[last] = format!("{} {text}", paragraphs[last]),
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs
}
